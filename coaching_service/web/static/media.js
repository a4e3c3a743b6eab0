"use strict";
// Videos and pictures of sets: speed, frames, marks of comments, and drawing for coaches. Without this script the player of
// the browser shows a video, and the texts of the comments say at which time.
{
  const SVG = "http://www.w3.org/2000/svg";
  const FRAME = 1 / 30; // seconds
  const NEAR = 0.2; // seconds: marks are shown on the frames around theirs
  const POINTS = { line: 2, arrow: 2, circle: 2, angle: 3 };
  const NAMES = {
    line: ["Start", "End"],
    arrow: ["End", "Head"],
    circle: ["Centre", "Edge"],
    angle: ["First end", "Vertex", "Second end"],
  };
  const SHORTEST = 0.03; // of the width: what is shorter was a tap
  const MOST = 20;
  let players = [];

  const limit = (value) => Math.min(1, Math.max(0, Math.round(value * 10_000) / 10_000));

  // The shapes of a mark in pixels, as pairs of a tag and its attributes.
  function shapesOf({ kind, points }, width, height) {
    const [one, two, three] = points.map(([x, y]) => [x * width, y * height]);
    const line = ["polyline", { points: [one, two, three].filter(Boolean).join(" ") }];
    if (kind === "circle") return [["circle", { cx: one[0], cy: one[1], r: Math.hypot(two[0] - one[0], two[1] - one[1]) }]];
    if (kind === "arrow") {
      const angle = Math.atan2(two[1] - one[1], two[0] - one[0]);
      const end = (turn) => [two[0] - 16 * Math.cos(angle + turn), two[1] - 16 * Math.sin(angle + turn)];
      return [line, ["polyline", { points: [end(0.5), two, end(-0.5)].join(" ") }]];
    }
    if (kind === "angle") {
      const turn = Math.atan2(one[1] - two[1], one[0] - two[0]) - Math.atan2(three[1] - two[1], three[0] - two[0]);
      const degrees = Math.abs(Math.round((turn * 180) / Math.PI)) % 360;
      return [line, ["text", { x: two[0] + 10, y: two[1] - 10 }, `${degrees > 180 ? 360 - degrees : degrees}°`]];
    }
    return [line];
  }

  function createPlayer(element) {
    const stage = element.querySelector(".player-stage"), marks = element.querySelector("[data-marks]");
    const media = stage.querySelector("video, img");
    const video = media.matches("video") ? media : null;
    const form = element.querySelector("[data-draw]") && element.closest("[data-check]")?.querySelector(".check-answer");
    let shown = { at: null, marks: [] }; // of a comment
    let drafts = []; // of the answer
    let draftAt = null; // seconds
    let tool = null;

    const isAt = (at) => !video || at === null || Math.abs(video.currentTime - at) < NEAR;
    const visible = () => [...(isAt(shown.at) ? shown.marks : []), ...(isAt(draftAt) ? drafts : [])];

    function render() {
      const { clientWidth: width, clientHeight: height } = stage;
      marks.setAttribute("viewBox", `0 0 ${width} ${height}`);
      marks.replaceChildren();
      for (const layer of ["edge", "mark"]) {
        for (const [tag, attributes, text] of visible().flatMap((mark) => shapesOf(mark, width, height))) {
          if (text && layer === "edge") continue;
          const shape = document.createElementNS(SVG, tag);
          for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
          if (text) shape.textContent = text;
          else shape.setAttribute("class", layer);
          marks.append(shape);
        }
      }
      showHandles();
    }

    // --- drawing: a mark is drawn with a pointer, or appears in the middle; its points are buttons that can be moved ------------

    function showHandles() {
      const wanted = isAt(draftAt) ? drafts.flatMap((mark) => mark.points.map((point, at) => [mark, at])) : [];
      const handles = [...stage.querySelectorAll(".player-handle")];
      for (const extra of handles.slice(wanted.length)) extra.remove();
      wanted.forEach(([mark, at], number) => {
        const handle = handles[number] ?? createHandle();
        handle.mark = mark;
        handle.at = at;
        handle.setAttribute("aria-label", `${NAMES[mark.kind][at]} of the ${mark.kind}. Move with the arrow keys, remove with Delete.`);
        handle.style.left = `${mark.points[at][0] * 100}%`;
        handle.style.top = `${mark.points[at][1] * 100}%`;
      });
    }

    function createHandle() {
      const handle = document.createElement("button");
      handle.type = "button";
      handle.className = "player-handle";
      handle.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        handle.setPointerCapture(event.pointerId);
        handle.focus();
      });
      handle.addEventListener("pointermove", (event) => {
        if (handle.hasPointerCapture(event.pointerId)) moveTo(handle, placeOf(event));
      });
      handle.addEventListener("keydown", (event) => {
        const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
        const step = event.shiftKey ? 0.05 : 0.01;
        if (event.key === "Delete" || event.key === "Backspace") remove(handle.mark);
        else if (x || y) moveTo(handle, [handle.mark.points[handle.at][0] + x * step, handle.mark.points[handle.at][1] + y * step]);
        else return;
        event.preventDefault();
      });
      stage.append(handle);
      return handle;
    }

    function moveTo(handle, [x, y]) {
      handle.mark.points[handle.at] = [limit(x), limit(y)];
      store();
    }

    function placeOf(event) {
      const { left, top, width, height } = stage.getBoundingClientRect();
      return [limit((event.clientX - left) / width), limit((event.clientY - top) / height)];
    }

    function store() {
      form.elements.marks.value = drafts.length ? JSON.stringify(drafts) : "";
      element.querySelector("[data-undo]").disabled = !drafts.length;
      render();
    }

    function remove(mark) {
      drafts = drafts.filter((other) => other !== mark);
      if (!drafts.length) draftAt = null;
      store();
      element.querySelector(`[data-draw=${mark.kind}]`).focus();
    }

    function addDraft(kind, start, end) {
      if (drafts.length >= MOST) return null;
      if (video) {
        video.pause();
        if (!isAt(draftAt)) drafts = []; // a comment is about one time
        draftAt = video.currentTime;
        fillTime();
      }
      const middle = [limit((start[0] + end[0]) / 2), limit((start[1] + end[1]) / 2 + 0.12)];
      const mark = { kind, points: POINTS[kind] === 3 ? [start, middle, end] : [start, end] };
      drafts.push(mark);
      return mark;
    }

    function fillTime() {
      const field = form?.elements.at;
      if (field && video) field.value = Math.round(video.currentTime * 100) / 100;
    }

    function setTool(kind) {
      tool = kind;
      marks.classList.toggle("drawing", Boolean(kind));
      for (const button of element.querySelectorAll("[data-draw]")) button.setAttribute("aria-pressed", button.dataset.draw === kind);
    }

    function choose(button, isOfKeyboard) {
      const kind = button.dataset.draw;
      if (!isOfKeyboard) return setTool(tool === kind ? null : kind);
      const mark = addDraft(kind, [0.4, 0.45], [0.6, 0.55]);
      store();
      const handle = [...stage.querySelectorAll(".player-handle")].find((each) => each.mark === mark);
      handle?.focus();
    }

    marks.addEventListener("pointerdown", (event) => {
      if (!tool) return;
      event.preventDefault();
      marks.setPointerCapture(event.pointerId);
      const start = placeOf(event), mark = addDraft(tool, start, start);
      if (!mark) return setTool(null);
      const last = mark.points.length - 1;
      const follow = (moved) => {
        mark.points[last] = placeOf(moved);
        if (last === 2) mark.points[1] = [limit((start[0] + mark.points[2][0]) / 2), limit((start[1] + mark.points[2][1]) / 2 + 0.12)];
        store();
      };
      const end = () => {
        const [x, y] = mark.points[last];
        if (Math.hypot(x - start[0], y - start[1]) < SHORTEST) mark.points[last] = [limit(start[0] + 0.15), limit(start[1] + 0.1)];
        marks.removeEventListener("pointermove", follow);
        setTool(null); // the controls of the video can be used again
        store();
      };
      marks.addEventListener("pointermove", follow);
      marks.addEventListener("pointerup", end, { once: true });
    });

    // --- looking at it -------------------------------------------------------------------------------------------------------

    // The players that move together with this one, itself included.
    const together = () => (document.querySelector("[data-together] input")?.checked ? players : [player]);

    function setSpeed(speed) {
      if (video) video.playbackRate = speed;
      for (const button of element.querySelectorAll("[data-speed]")) button.setAttribute("aria-pressed", Number(button.dataset.speed) === speed);
    }

    function step(count) {
      if (!video) return;
      video.pause();
      video.currentTime = Math.max(0, video.currentTime + count * FRAME);
    }

    function show(button) {
      const at = button.dataset.at === "" ? null : Number(button.dataset.at);
      shown = { at, marks: JSON.parse(button.dataset.drawn || "[]") };
      if (video && at !== null) {
        video.pause();
        if (video.readyState) video.currentTime = at;
        else {
          video.addEventListener("loadedmetadata", () => (video.currentTime = at), { once: true });
          video.load();
          video.preload = "auto";
        }
      }
      render();
      stage.scrollIntoView({ block: "nearest" });
    }

    element.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.speed) for (const each of together()) each.setSpeed(Number(button.dataset.speed));
      else if (button.dataset.step) for (const each of together()) each.step(Number(button.dataset.step));
      else if (button.dataset.draw) choose(button, event.detail === 0);
      else if ("undo" in button.dataset) drafts.length && (drafts.pop(), store());
    });
    element.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const count = { ",": -1, ".": 1 }[event.key];
      if (event.key === "Escape" && tool) setTool(null);
      if (!count || !video) return;
      event.preventDefault();
      for (const each of together()) each.step(count);
    });
    if (video) {
      for (const name of ["timeupdate", "seeked", "play"]) video.addEventListener(name, render);
      video.addEventListener("pause", () => !video.ended && video.currentTime > 0 && !drafts.length && fillTime());
      video.addEventListener("play", () => together().forEach((each) => each !== player && each.video?.play()));
      video.addEventListener("pause", () => together().forEach((each) => each !== player && each.video?.pause()));
    }
    media.addEventListener(video ? "loadedmetadata" : "load", render);
    new ResizeObserver(render).observe(stage);

    const player = { element, video, setSpeed, step, show };
    const tools = element.querySelector("[data-tools]");
    tools.hidden = !tools.childElementCount;
    if (form?.elements.marks.value) {
      drafts = JSON.parse(form.elements.marks.value); // the form was rejected
      draftAt = form.elements.at ? Number(form.elements.at.value) : null;
    }
    players.push(player);
    render();
  }

  function begin() {
    players = [];
    for (const element of document.querySelectorAll("[data-player]")) createPlayer(element);
    for (const box of document.querySelectorAll("[data-together]")) box.hidden = players.length < 2;
    // With a keyboard the answer can be typed at once; on a phone its keyboard would cover the video.
    const isDesk = matchMedia("(min-width: 62.01rem) and (pointer: fine)").matches;
    if (isDesk) document.querySelector(".form-check .check-answer textarea")?.focus({ preventScroll: true });
  }

  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button[data-show]");
    const element = button?.closest("[data-check]")?.querySelector("[data-player]");
    players.find((player) => player.element === element)?.show(button);
  });
  // The next one has taken the place of one that was answered.
  document.addEventListener("htmx:afterSettle", ({ target }) => target.id === "check-page" && begin());
  begin();
}
