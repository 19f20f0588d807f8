// The panes of a run. `value` is JSON in a string, because the page's framework would wrap each nested value in a
// proxy.
const root = element.querySelector('.panes');
const panes = [];
let run = null;

function showSetup(value) {
  const box = element.querySelector('.asked');
  box.hidden = !value.asked;
  box.replaceChildren();
  make(box, 'summary', '', value.asked_label);
  const list = make(box, 'dl');
  for (const [name, text] of value.asked ?? []) {
    make(list, 'dt', '', name);
    make(list, 'dd', '', text);
  }
}

// The findings of a run that has ended: what was seen, what it means, what to do.
function showFindings(findings) {
  const box = element.querySelector('.findings');
  const state = findings?.items.length ? JSON.stringify(findings) : '';
  if (box.dataset.state === state) return;
  box.dataset.state = state;
  box.hidden = !state;
  box.replaceChildren();
  if (!state) return;
  make(box, 'summary', '', findings.title);
  const list = make(box, 'ul');
  for (const {colour, sentences: [seen, means, todo], change} of findings.items) {
    const item = make(list, 'li', 'side');
    item.style.setProperty('--side', colour);
    make(item, 'span', '', `${seen} `);
    make(item, 'span', 'means', means);
    const remedy = make(item, 'p', '', todo);
    if (change) make(remedy, 'code', '', change);
  }
}

// HTML, escaped where it was built. It is kept while it stays the same, for who reads it or has selected it.
let verdict = '';
function showVerdict(html) {
  if (html === verdict) return;
  verdict = html;
  element.querySelector('.verdict').innerHTML = html;
}

// Where the run is kept. The history has the buttons of its own.
function showSaved(saved) {
  const box = element.querySelector('.saved');
  const state = saved && props.applies ? JSON.stringify([run, saved]) : '';
  if (box.dataset.state === state) return;
  box.dataset.state = state;
  box.hidden = !state;
  box.replaceChildren();
  if (!state) return;
  const address = addressOf('run', run);
  make(box, 'span', '', saved.text);
  const copy = make(box, 'button', '', saved.link);
  copy.type = 'button';
  copy.addEventListener('click', async () => {
    copy.textContent = await copyText(address) ? saved.copied : address;
  });
  make(box, 'a', '', saved.open).href = address;
}

function build(value) {
  root.replaceChildren();
  panes.length = 0;
  cells = [];
  run = value.run;
  for (const side of value.sides) {
    const box = make(root, 'section', 'pane');
    box.style.setProperty('--side', side.colour);
    const head = make(box, 'header');
    make(head, 'h3', 'side', side.label).ariaLevel = '2';
    make(head, 'span', 'badge', side.method);
    const place = make(head, 'span', 'badge');
    const stage = make(box, 'div', 'stage');
    const stageText = make(stage, 'span');
    const bar = make(make(stage, 'div', 'track'), 'div', 'bar');
    const parts = value.mode === 'race' ? buildRace(box, side, value) : buildMeasured(box);
    const details = make(box, 'details', 'command');
    make(details, 'summary', '', value.command_label);
    const command = make(details, 'code');
    panes.push({box, place, stage, stageText, bar, details, command, deploy: make(box, 'div', 'snippets'), ...parts});
  }
}

// Where a change can be applied it is a button, which works once. Elsewhere a sentence says where to apply it.
function showChanges(pane, side, {changes, elsewhere}) {
  const list = make(pane.problem, props.applies ? 'div' : 'p', 'changes');
  if (!props.applies) {
    list.textContent = elsewhere;
    return;
  }
  changes.forEach((text, change) => {
    const item = make(list, 'button', '', text);
    item.type = 'button';
    item.addEventListener('click', () => {
      item.disabled = true;
      trigger('click', {run, side, change});
    });
  });
}

// A pane is repainted as a whole at the end of a run. An unchanged problem is kept, so that pressed buttons stay so.
function showProblem(pane, index, problem) {
  const state = JSON.stringify(problem);
  if (state === pane.problemState) return;
  pane.problemState = state;
  pane.problem.replaceChildren();
  if (!problem) return;
  for (const line of problem.lines) make(pane.problem, 'p', '', line);
  if (problem.changes.length) showChanges(pane, index, problem);
  if (!problem.log.length) return;
  const log = make(pane.problem, 'details');
  make(log, 'summary', '', problem.log_label);
  make(log, 'pre', '', problem.log.join('\n'));
}

function clear() {
  build({run: null, sides: []});
  for (const name of ['.headline', '.spoken', '.verdict', '.note']) put(element.querySelector(name), '');
  for (const name of ['.asked', '.all-figures', '.key-figures']) element.querySelector(name).hidden = true;
  verdict = '';
  showFindings(null);
  showSaved(null);
}

function show(text) {
  if (!text) return clear();
  const value = JSON.parse(text);
  if (value.run !== run || value.sides.length !== panes.length) build(value);
  put(element.querySelector('.headline'), value.headline);
  // Seconds that go by are not spoken.
  put(element.querySelector('.spoken'), value.headline.split(' · ')[0]);
  put(element.querySelector('.note'), value.note);
  showSaved(value.saved);
  showVerdict(value.verdict);
  showFindings(value.findings);
  if (value.asked) showSetup(value);
  value.sides.forEach((side, index) => {
    const pane = panes[index];
    (value.mode === 'race' ? showRace : showMeasured)(pane, side);
    if (side.problem !== undefined) showProblem(pane, index, side.problem);
    if (value.deploy) showDeploy(pane.deploy, value.deploy[index]);
    if (side.stage === undefined) return;
    pane.place.textContent = side.place;
    pane.stage.hidden = !side.stage;
    put(pane.stageText, side.stage);
    pane.bar.parentNode.hidden = side.fraction === null;
    pane.bar.style.width = `${(side.fraction ?? 0) * 100}%`;
    pane.details.hidden = !side.command;
    put(pane.command, side.command);
  });
  showTable(value);
}

watch('value', () => show(props.value));
show(props.value);
