"use strict";
// Draws each chart of values by date with uPlot, which shows the value at the pointer. Without this script, and on paper,
// the SVG of the page is shown. The values are in a block of JSON next to it, and in the table below.

const DAY = 86400;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MAX_POINTS = 60;
const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });

function colorOf(role) {
  return getComputedStyle(document.documentElement).getPropertyValue(role).trim();
}

function toDay(seconds) {
  const day = new Date(seconds * 1000);
  return { weekday: WEEKDAYS[day.getUTCDay()], date: day.getUTCDate(), month: MONTHS[day.getUTCMonth()], year: day.getUTCFullYear() };
}

function describe(seconds, value, unit) {
  const { weekday, date, month, year } = toDay(seconds);
  return `${weekday} ${date} ${month} ${year}: ${numbers.format(value)} ${unit}`;
}

// The labels of the time axis: years, months or days, whichever its ticks are apart; the year where it changes,
// and at first if it changes within the chart.
function labelTicks(plot, ticks, axis, space, step) {
  const times = plot.data[0];
  let lastYear = toDay(times[0]).year === toDay(times.at(-1)).year ? toDay(times[0]).year : null;
  return ticks.map((tick) => {
    const { date, month, year } = toDay(tick);
    if (step >= 365 * DAY) return `${year}`;
    const label = step >= 28 * DAY ? month : `${date} ${month}`;
    const isNew = year !== lastYear;
    lastYear = year;
    return isNew ? `${label}\n${year}` : label;
  });
}

// The widest label of the vertical axis, in pixels.
function measure(plot, labels) {
  return Math.max(36, 14 + 7.2 * Math.max(...(labels ?? [""]).map((label) => label.length)));
}

// The pointer's line moves from value to value.
function moveToValue(plot, left, top) {
  return left < 0 ? [left, top] : [plot.valToPos(plot.data[0][plot.posToIdx(left)], "x"), top];
}

function showValue(unit) {
  const text = document.createElement("div");
  text.className = "plot-value";
  text.hidden = true;
  return {
    hooks: {
      init: (plot) => plot.over.append(text),
      setCursor: (plot) => {
        const at = plot.cursor.idx;
        text.hidden = at == null || plot.cursor.left < 0;
        if (text.hidden) return;
        const [times, values] = plot.data;
        text.textContent = describe(times[at], values[at], unit);
        const x = plot.valToPos(times[at], "x"), y = plot.valToPos(values[at], "y");
        text.style.left = `${Math.max(0, Math.min(x - text.offsetWidth / 2, plot.over.clientWidth - text.offsetWidth))}px`;
        text.style.top = `${y > text.offsetHeight + 12 ? y - text.offsetHeight - 10 : y + 12}px`;
      },
    },
  };
}

function sizeOf(place) {
  const width = Math.max(place.clientWidth, 160);
  return { width, height: width < 420 ? 200 : 260 };
}

function draw(place, { unit, dates, values }) {
  const times = dates.map((date) => Date.parse(`${date}T00:00Z`) / 1000);
  const axis = {
    stroke: colorOf("--soft"),
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
    grid: { stroke: colorOf("--line"), width: 1 },
    ticks: { show: false },
  };
  const line = colorOf("--series-1");
  const single = times.length === 1;
  return new uPlot(
    {
      ...sizeOf(place),
      padding: [10, 24, 0, 0],
      legend: { show: false },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: { y: false, move: moveToValue, drag: { setScale: false, x: false, y: false }, points: { size: 9, fill: line, stroke: line } },
      scales: { x: single ? { range: () => [times[0] - 3 * DAY, times[0] + 3 * DAY] } : {} },
      axes: [
        {
          ...axis,
          grid: { show: false },
          space: 56,
          incrs: [1, 2, 3, 7, 14, 30, 61, 92, 183, 365, 730, 1826].map((days) => days * DAY),
          splits: splitTime,
          values: labelTicks,
          size: (plot, labels) => (labels?.some((label) => label.includes("\n")) ? 44 : 30),
        },
        { ...axis, space: 34, size: measure, values: (plot, ticks) => ticks.map((tick) => numbers.format(tick)) },
      ],
      series: [{}, { stroke: line, width: 2, points: { show: times.length <= MAX_POINTS, size: 7, fill: colorOf("--card") } }],
      plugins: [showValue(unit)],
    },
    [times, values],
    place,
  );
}

// The ticks of the time axis: days a fixed number apart, or else first days of months or years.
function splitTime(plot, axis, low, high, step) {
  const months = Math.round(step / (30.4 * DAY));
  const ticks = [];
  if (months < 1) {
    for (let tick = Math.ceil(low / DAY) * DAY; tick <= high; tick += step) ticks.push(tick);
    return ticks;
  }
  const first = new Date(low * 1000);
  let month = first.getUTCMonth() - (first.getUTCMonth() % Math.min(months, 12));
  for (; ; month += months) {
    const tick = Date.UTC(first.getUTCFullYear(), month, 1) / 1000;
    if (tick > high) return ticks;
    if (tick >= low) ticks.push(tick);
  }
}

for (const figure of document.querySelectorAll("[data-plot]")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const place = document.createElement("div");
  place.className = "plot-place";
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", data.label);
  const unit = document.createElement("p");
  unit.className = "plot-unit";
  unit.setAttribute("aria-hidden", "true");
  unit.textContent = data.unit;
  figure.append(unit, place);
  figure.classList.add("drawn");

  let plot = draw(place, data);
  new ResizeObserver(() => {
    const size = sizeOf(place);
    if (size.width !== plot.width) plot.setSize(size);
  }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    plot.destroy();
    plot = draw(place, data);
  });
}
