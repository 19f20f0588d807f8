// Charts drawn by plotly.js itself: gr.Plot rebuilds its whole chart on every change, which flickers. The library is
// loaded with the first figure, so that the page is usable before it.
const boxes = {};
let loading = null;

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
  for (const [name, figure] of Object.entries(JSON.parse(props.value))) {
    const box = (boxes[name] ??= element.querySelector(`[data-chart="${name}"]`));
    const layout = {...figure.layout, autosize: true, font: {...figure.layout.font, color: colour}};
    await window.Plotly.react(box, figure.data, layout, {responsive: true, displaylogo: false, displayModeBar: false});
  }
}

watch('value', show);
show();
