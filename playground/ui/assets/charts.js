// Charts drawn by plotly.js itself: gr.Plot rebuilds its whole chart on every change, which flickers. The library is
// loaded when the charts are unfolded; the leading chart is an image from the server.
const grid = element.querySelector('.chart-grid');
const fold = element.querySelector('.all-charts');
let boxes = {};
let drawn = {};
let loading = null;
let latest = 0;
let pending = {};
let saving = {};
const clickable = new Set();

// A point that stands for a run has the run's id.
function clicked({points: [point]}) {
  if (point.customdata) trigger('click', {run: point.customdata});
}

function library() {
  if (window.Plotly) return Promise.resolve();
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = `${window.gradio_config?.root ?? ''}/gradio_api/file=${props.plotly}`;
    script.onload = resolve;
    script.onerror = reject;
    document.head.appendChild(script);
  });
  return loading;
}

// The buttons that appear over a chart. What is saved has the page's background, or light text would stand on white.
function savers(name) {
  return Object.entries(saving).map(([format, title]) => ({
    name: title,
    title,
    icon: window.Plotly.Icons[format === 'png' ? 'camera' : 'disk'],
    click: ({data, layout, offsetWidth, offsetHeight}) => {
      const background = getComputedStyle(element).getPropertyValue('--background-fill-primary');
      const figure = {data, layout: {...layout, paper_bgcolor: background}};
      window.Plotly.downloadImage(figure, {format, filename: name, width: offsetWidth, height: offsetHeight});
    },
  }));
}

// A race and a measured run have different charts.
function arrange(names) {
  if (names.join() === Object.keys(boxes).join()) return;
  for (const box of Object.values(boxes)) window.Plotly.purge(box);
  grid.replaceChildren();
  drawn = {};
  clickable.clear();
  boxes = Object.fromEntries(names.map((name) => [name, document.createElement('div')]));
  for (const [name, box] of Object.entries(boxes)) {
    box.dataset.chart = name;
    grid.appendChild(box);
  }
}

function show(text) {
  const value = text ? JSON.parse(text) : {};
  element.querySelector('.lead-chart').innerHTML = value.lead ?? '';
  fold.hidden = !value.figures;
  element.querySelector('.all-charts > summary').textContent = value.title ?? '';
  element.querySelector('.left-out').textContent = value.left_out ?? '';
  pending = value.figures ?? {};
  saving = {png: value.png, svg: value.svg};
  if (fold.open) draw();
}

async function draw() {
  const message = element.querySelector('.charts-message');
  try {
    await library();
  } catch {
    message.textContent = props.failed;
    return;
  }
  const colour = getComputedStyle(element).color;
  const drawing = ++latest;
  const figures = Object.entries(pending);
  arrange(figures.map(([name]) => name));
  for (const [name, figure] of figures) {
    const text = colour + JSON.stringify(figure);
    if (drawn[name] === text) continue;
    // One chart a frame, so that tokens get painted in between.
    await new Promise(requestAnimationFrame);
    if (drawing !== latest) return;
    drawn[name] = text;
    const layout = {...figure.layout, autosize: true, font: {...figure.layout.font, color: colour}};
    await window.Plotly.react(boxes[name], figure.data, layout, {responsive: true, displaylogo: false, modeBarButtons: [savers(name)]});
    if (!clickable.has(name)) boxes[name].on('plotly_click', clicked);
    clickable.add(name);
  }
}

fold.addEventListener('toggle', () => { if (fold.open) draw(); });
watch('value', () => show(props.value));
show(props.value);
