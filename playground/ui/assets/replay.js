// Plays a race that has ended: the server sends all pictures at once, and each part of one goes to the component that
// shows it, as if the race were under way.
const box = element.querySelector('.replay');
const speeds = [1, 2, 4];
let pictures = [];
let speed = 1;
let position = 0;
let next = 0;
let frame = 0;
let before = 0;
let playing = '';

function send(parts) {
  for (const [part, value] of Object.entries(parts)) {
    document.dispatchEvent(new CustomEvent(`live:${props.place}-${part}`, {detail: value}));
  }
}

function step(now) {
  position += (now - before) * speed;
  before = now;
  while (next < pictures.length && pictures[next][0] <= position) send(pictures[next++][1]);
  if (next < pictures.length) frame = requestAnimationFrame(step);
}

function stop() {
  cancelAnimationFrame(frame);
  next = pictures.length;
}

function play() {
  stop();
  position = next = 0;
  before = performance.now();
  frame = requestAnimationFrame(step);
}

// What was played goes with the line that says where it comes from.
function close() {
  stop();
  if (!box.hidden) send({panes: '', charts: '{}', outcome: '', points: ''});
  playing = '';
  box.hidden = true;
}

function add(parent, text, action) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = text;
  button.addEventListener('click', () => action(button));
  parent.appendChild(button);
  return button;
}

// `texts`: what the buttons say. What has no times of its own has nothing to play.
function build({origin, others, texts}, link) {
  box.replaceChildren();
  const text = document.createElement('p');
  text.className = 'origin';
  text.textContent = origin;
  box.appendChild(text);
  const buttons = document.createElement('div');
  box.appendChild(buttons);
  if (pictures.length > 1) {
    add(buttons, texts.again, play);
    const chosen = speeds.map((value) => add(buttons, `${value}×`, (button) => {
      speed = value;
      for (const other of chosen) other.setAttribute('aria-pressed', String(other === button));
      if (next >= pictures.length) play();
    }));
    chosen.forEach((button, index) => button.setAttribute('aria-pressed', String(speeds[index] === speed)));
    add(buttons, texts.end, () => {
      stop();
      send(pictures.at(-1)[1]);
    });
  }
  for (const [name, other] of others) add(buttons, other, () => trigger('click', {query: {recording: name}}));
  add(buttons, texts.link, async (button) => {
    button.textContent = await copyText(link) ? texts.copied : link;
  });
  add(buttons, texts.close, () => {
    close();
    showAddress();
  });
}

async function show() {
  close();
  if (!props.value) return;
  const {kind, name} = JSON.parse(props.value);
  const source = playing = `${kind}/${encodeURIComponent(name)}`;
  const more = kind === 'run' ? {replay: '1'} : {};
  showAddress(kind, name, more);
  const answer = await fetch(`${window.gradio_config?.root ?? ''}/live/replay/${source}`);
  const replay = await answer.json();
  // Something else was chosen meanwhile.
  if (playing !== source || !replay.pictures) return;
  pictures = replay.pictures;
  build(replay, addressOf(kind, name, more));
  box.hidden = false;
  requestAnimationFrame(() => box.scrollIntoView({block: 'nearest'}));
  play();
}

watch('value', show);
show();
