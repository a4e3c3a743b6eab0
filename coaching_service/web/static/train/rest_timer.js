// The rest after a set. Only its start and length are stored, so it is right after a reload or a sleep.
train.restTimer = (() => {
  const STEP = 15;
  const LATE = 3_000; // a rest that ended longer ago makes no sound
  const SHOWN_AFTER_END = 8_000;
  const place = document.querySelector("[data-rest-timer]");
  const key = `rest ${train.user}`;
  let state = null; // {key, label, startedAt, seconds}
  let ticking = 0;
  let audio = null;
  let wakeLock = null;
  let time, bar;

  const remaining = () => state.startedAt + state.seconds * 1000 - Date.now();

  // No rest is longer than it was set: with more remaining, the clock was set back, and the rest starts again.
  function boundByClock() {
    if (state.startedAt <= Date.now()) return;
    state.startedAt = Date.now();
    save();
  }

  function build() {
    place.classList.add("rest-timer");
    const label = document.createElement("span");
    label.textContent = "Rest";
    time = document.createElement("span");
    time.className = "rest-time";
    time.setAttribute("role", "timer");
    time.setAttribute("aria-live", "off");
    bar = document.createElement("progress");
    bar.setAttribute("aria-label", "Rest");
    place.append(
      bar,
      label,
      time,
      createButton("−15 s", "15 seconds less rest", () => extend(-STEP)),
      createButton("+15 s", "15 seconds more rest", () => extend(STEP)),
      createButton("Skip", "Skip the rest", () => stop()),
    );
  }

  function createButton(text, label, work) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = text;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", work);
    return button;
  }

  function start(seconds, label) {
    if (!place || !(seconds > 0)) return;
    prepareSound();
    state = { key, label, startedAt: Date.now(), seconds };
    save();
    show();
    train.announce(`Rest: ${seconds} seconds`);
  }

  function extend(seconds) {
    if (!state) return;
    const elapsed = (Date.now() - state.startedAt) / 1000;
    state.seconds = Math.max(state.seconds + seconds, elapsed);
    save();
    tick();
  }

  // End the rest, or only that after the set with a label.
  function stop(label) {
    if (!state || (label && state.label !== label)) return;
    clear();
    train.store.remove("states", key).then(() => train.tell("rest", {}), () => {});
  }

  const save = () => train.store.write("states", state).then(() => train.tell("rest", {}), () => {});

  function clear() {
    state = null;
    clearInterval(ticking);
    ticking = 0;
    place.hidden = true;
    wakeLock?.release();
    wakeLock = null;
  }

  // Continue the stored rest, after loading or when another tab changed it.
  async function restore() {
    if (!place) return;
    const before = state;
    const stored = await train.store.read("states", key);
    if (state !== before) return; // a rest was started or ended while the store was read
    if (stored) {
      state = stored;
      boundByClock();
      if (remaining() > -SHOWN_AFTER_END) return show();
    }
    if (state) clear();
  }

  function show() {
    if (!time) build();
    place.hidden = false;
    place.classList.remove("over");
    ticking ||= setInterval(tick, 250);
    keepAwake();
    tick();
  }

  function tick() {
    if (!state) return;
    boundByClock();
    const left = remaining();
    const seconds = Math.max(0, Math.ceil(left / 1000));
    const text = left > 0 ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` : "Rest is over";
    if (time.textContent !== text) time.textContent = text;
    bar.max = state.seconds || 1;
    bar.value = Math.min(bar.max, seconds);
    if (left > 0) return place.classList.remove("over");
    if (!place.classList.contains("over")) end(-left);
    if (-left > SHOWN_AFTER_END) stop();
  }

  function end(late) {
    place.classList.add("over");
    if (late > LATE || document.visibilityState !== "visible") return;
    train.announce("Rest is over");
    navigator.vibrate?.([200, 100, 200]);
    playTone();
  }

  // Browsers allow sound only after a tap: this is called by one.
  function prepareSound() {
    try {
      audio ??= new AudioContext();
      audio.resume().catch(() => {});
    } catch {
      audio = null;
    }
  }

  function playTone() {
    if (audio?.state !== "running") return;
    for (const delay of [0, 0.25]) {
      const tone = audio.createOscillator();
      const volume = audio.createGain();
      const at = audio.currentTime + delay;
      tone.frequency.value = 880;
      volume.gain.setValueAtTime(0.15, at);
      volume.gain.exponentialRampToValueAtTime(0.001, at + 0.18);
      tone.connect(volume).connect(audio.destination);
      tone.start(at);
      tone.stop(at + 0.2);
    }
  }

  // Keep the screen on while the rest runs. The browser ends this when the page is hidden.
  async function keepAwake() {
    if (!state || wakeLock || !navigator.wakeLock || document.visibilityState !== "visible") return;
    try {
      const lock = await navigator.wakeLock.request("screen");
      if (!state) return lock.release();
      wakeLock = lock;
      lock.addEventListener("release", () => (wakeLock = wakeLock === lock ? null : wakeLock));
    } catch {
      // refused, with a low battery for example
    }
  }

  function wake() {
    keepAwake();
    tick();
  }

  return { start, stop, restore, wake };
})();
