// A race's panes: answers that grow, and each side's figures under its own. A value carries tokens from index `from`
// on (some may be there already, after a picture of the whole), and facts when they changed.
function buildRace(box, side, value) {
  const answer = make(box, 'div', 'answer');
  answer.tabIndex = 0;
  answer.setAttribute('aria-label', side.label);
  const text = make(answer, 'div', 'text');
  return {
    text,
    empty: make(text, 'p', 'empty', value.empty),
    problem: make(box, 'div', 'problem'),
    legend: make(box, 'div', 'legend'),
    facts: make(box, 'dl', 'facts'),
    values: [],
    count: 0,
  };
}

function append(pane, side) {
  if (side.reset) {
    pane.text.querySelectorAll('.token').forEach((node) => node.remove());
    pane.count = 0;
  }
  const fresh = side.spans.slice(Math.max(0, pane.count - side.from));
  if (!fresh.length) return;
  pane.count += fresh.length;
  pane.empty.hidden = true;
  // Neighbours of one colour share an element: fewer to lay out. The style sheet keeps the view at the end.
  const fragment = document.createDocumentFragment();
  let last = null;
  for (const [text, drafted] of fresh) {
    if (last && last.drafted === drafted) last.text += text;
    else fragment.appendChild((last = {text, drafted, node: document.createElement('span')}).node);
    last.node.className = drafted ? 'token draft' : 'token';
    last.node.textContent = last.text;
  }
  pane.text.appendChild(fragment);
}

function showFacts(pane, facts) {
  if (pane.values.length !== facts.length) {
    pane.facts.replaceChildren();
    pane.values = facts.map(([name, , meaning]) => {
      const item = make(pane.facts, 'div');
      term(make(item, 'dt'), name, meaning);
      return make(item, 'dd');
    });
  }
  facts.forEach(([, text], index) => put(pane.values[index], text));
}

function showRace(pane, side) {
  append(pane, side);
  if (!side.facts) return;
  pane.box.classList.toggle('idle', side.idle);
  showFacts(pane, side.facts);
  pane.legend.replaceChildren();
  for (const [name, text] of side.legend) make(pane.legend, 'span', name, text);
}
