// A video that is chosen for a set: its size is checked, and a picture of it is made here, since the server does not decode it.
train.media = (() => {
  const WIDTH = 640;
  const PATIENCE = 8_000;

  const happens = (target, name) =>
    new Promise((resolve, reject) => {
      target.addEventListener(name, resolve, { once: true });
      target.addEventListener("error", reject, { once: true });
      setTimeout(reject, PATIENCE, new Error("no picture"));
    });

  async function createPoster(file) {
    const video = document.createElement("video");
    video.muted = video.playsInline = true;
    video.preload = "auto";
    video.src = URL.createObjectURL(file);
    try {
      await happens(video, "loadeddata");
      video.currentTime = Math.min(1, (video.duration || 0) / 2);
      await happens(video, "seeked");
      const canvas = document.createElement("canvas");
      canvas.width = Math.min(WIDTH, video.videoWidth);
      canvas.height = Math.round((canvas.width * video.videoHeight) / video.videoWidth);
      canvas.getContext("2d").drawImage(video, 0, 0, canvas.width, canvas.height);
      return await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.8));
    } finally {
      URL.revokeObjectURL(video.src);
    }
  }

  function put(input, blob) {
    const transfer = new DataTransfer();
    if (blob) transfer.items.add(new File([blob], "poster.jpg", { type: blob.type }));
    input.files = transfer.files;
  }

  async function choose(input) {
    const [file] = input.files;
    const poster = input.form.elements.poster;
    const isLarge = file && file.size > Number(input.dataset.most);
    input.setCustomValidity(isLarge ? `This file has ${train.forms.sizeOf(file.size)}: choose one of at most ${train.forms.sizeOf(input.dataset.most)}.` : "");
    if (isLarge) input.reportValidity();
    if (file && !isLarge && "sendChosen" in input.dataset) {
      document.querySelector(`[data-photo-state="${input.form.id}"]`).value = "waiting";
      return input.form.requestSubmit();
    }
    if (!poster) return;
    put(poster, null);
    if (!file?.type.startsWith("video/") || isLarge) return;
    const made = await createPoster(file).catch(() => null); // a format that this browser does not play
    if (input.files[0] === file) put(poster, made);
  }

  document.addEventListener("change", ({ target }) => {
    if (target.matches?.("input[type=file][data-most]")) choose(target);
  });
})();
