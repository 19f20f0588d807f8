// Charts drawn by plotly.js itself: gr.Plot rebuilds its whole chart on every change, which flickers. The library is
// loaded with the first figure, so that the page is usable before it.
const boxes = {};
const drawn = {};
let loading = null;
let latest = 0;

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

async function show() {
  if (!props.value) return;
  const message = element.querySelector('.charts-message');
  try {
    await library();
  } catch {
    message.textContent = props.failed;
    return;
  }
  const colour = getComputedStyle(element).color;
  const drawing = ++latest;
  for (const [name, figure] of Object.entries(JSON.parse(props.value))) {
    const text = colour + JSON.stringify(figure);
    if (drawn[name] === text) continue;
    // One chart a frame, so that tokens get painted in between.
    await new Promise(requestAnimationFrame);
    if (drawing !== latest) return;
    drawn[name] = text;
    const box = (boxes[name] ??= element.querySelector(`[data-chart="${name}"]`));
    const layout = {...figure.layout, autosize: true, font: {...figure.layout.font, color: colour}};
    await window.Plotly.react(box, figure.data, layout, {responsive: true, displaylogo: false, displayModeBar: false});
  }
}

watch('value', show);
show();
