// Follows a run or a sweep: its parts come as server-sent events, and each goes to the component that shows it.
const parts = ['panes', 'charts', 'progress', 'outcome', 'points'];
const longest = 30_000;
let source = null;

function connect(id, wait) {
  const opened = source = new EventSource(`${window.gradio_config?.root ?? ''}/live/${encodeURIComponent(id)}`);
  opened.onopen = () => { wait = 1000; };
  for (const part of parts) {
    opened.addEventListener(part, ({data}) => {
      document.dispatchEvent(new CustomEvent(`live:${props.place}-${part}`, {detail: data}));
    });
  }
  opened.addEventListener('end', () => {
    opened.close();
    trigger('stop');
    if (props.place === 'compare') comeIntoSight();
  });
  // The browser itself connects again, unless the server has answered with an error.
  opened.onerror = () => {
    if (opened.readyState !== EventSource.CLOSED) return;
    setTimeout(() => { if (source === opened) connect(id, Math.min(2 * wait, longest)); }, wait);
  };
}

// The settings come back above the result once the run has ended, and push it out of sight.
function comeIntoSight() {
  const waiting = setInterval(() => {
    if (document.querySelector('#stop')) return;
    clearInterval(waiting);
    document.querySelector('[role=tabpanel] .headline')?.scrollIntoView({block: 'start'});
  }, 100);
}

function follow() {
  source?.close();
  source = null;
  if (!props.value) return;
  const {id} = JSON.parse(props.value);
  showAddress(props.place === 'sweep' ? 'sweep' : 'run', id);
  connect(id, 1000);
  // What the run shows is not to stand under open settings when it has ended.
  if (props.place === 'compare') document.querySelector('#sides button.label-wrap.open')?.click();
}

watch('value', follow);
follow();
