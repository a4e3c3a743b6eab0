"use strict";
// Photos of two dates: one over the other with a slider, and large in a dialog. Without this script they are next to each
// other, and each is a link to the large one.
{
  // The large photos of a pair in one place; the slider decides how much of the right one covers the left one.
  function createStage(links) {
    const stage = document.createElement("div");
    stage.className = "compare-stage";
    for (const link of links) {
      const image = document.createElement("img");
      image.src = link.href;
      image.alt = link.querySelector("img").alt;
      image.draggable = false;
      stage.append(image);
    }
    return stage;
  }

  for (const place of document.querySelectorAll("[data-compare]")) {
    const pair = place.querySelector(".compare-pair"), tools = place.querySelector("[data-tools]");
    const button = tools.querySelector("[data-over]"), field = tools.querySelector("[data-slider]"), slider = field.querySelector("input");
    let stage = null;

    function show() {
      const at = Number(slider.value);
      stage?.style.setProperty("--at", `${at}%`);
      slider.setAttribute("aria-valuetext", `${at} % ${slider.dataset.left}, ${100 - at} % ${slider.dataset.right}`);
    }

    function moveTo(event) {
      const { left, width } = stage.getBoundingClientRect();
      slider.value = Math.round((100 * (event.clientX - left)) / width);
      show();
    }

    button.addEventListener("click", () => {
      const isOver = button.getAttribute("aria-pressed") !== "true";
      if (!stage) {
        stage = createStage(pair.querySelectorAll("a"));
        pair.after(stage);
        stage.addEventListener("pointerdown", (event) => {
          stage.setPointerCapture(event.pointerId);
          moveTo(event);
        });
        stage.addEventListener("pointermove", (event) => stage.hasPointerCapture(event.pointerId) && moveTo(event));
      }
      button.setAttribute("aria-pressed", isOver);
      pair.hidden = isOver;
      stage.hidden = field.hidden = !isOver;
      show();
    });
    slider.addEventListener("input", show);
    tools.hidden = false;
  }

  function createButton(text, action) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = text;
    button.addEventListener("click", action);
    return button;
  }

  function enlarge(link) {
    const dialog = document.createElement("dialog"), image = document.createElement("img"), row = document.createElement("div");
    dialog.className = "card zoom";
    image.src = link.href;
    image.alt = link.querySelector("img").alt;
    dialog.setAttribute("aria-label", image.alt);
    const picture = document.createElement("div");
    picture.className = "zoom-picture";
    picture.tabIndex = 0;
    picture.setAttribute("role", "region");
    picture.setAttribute("aria-label", "Picture");
    picture.append(image);
    row.className = "row";
    const zoom = createButton("Zoom in", () => {
      const isLarge = dialog.classList.toggle("large");
      zoom.textContent = isLarge ? "Zoom out" : "Zoom in";
    });
    row.append(zoom, createButton("Close", () => dialog.close()));
    dialog.append(row, picture);
    dialog.addEventListener("close", () => {
      dialog.remove();
      link.focus();
    });
    document.body.append(dialog);
    dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-zoom]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    enlarge(link);
  });
}

// A tile shows the photo that is chosen for it, if the browser can read it.
document.addEventListener("change", async ({ target }) => {
  const tile = target.closest(".photo-tiles .field")?.querySelector("[data-tile]");
  if (!tile) return;
  const picture = target.files[0] && (await createImageBitmap(target.files[0], { resizeWidth: 320 }).catch(() => null));
  tile.querySelector("canvas")?.remove();
  tile.querySelector(".icon").toggleAttribute("hidden", Boolean(picture));
  if (!picture) return;
  const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
  canvas.getContext("2d").drawImage(picture, 0, 0);
  tile.append(canvas);
});
