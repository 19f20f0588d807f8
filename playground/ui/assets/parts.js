// What race.js, measured.js, deploy.js and view.js share: they are joined into one script, in this order. Text is
// inserted as text; what comes as HTML was escaped where it was built.
const make = (parent, tag, name, text) => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
};

const put = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

// A name whose definition opens on a click, a tap or Enter, and closes on Escape or a click elsewhere.
const definition = element.querySelector('.definition');
function term(parent, name, meaning) {
  const button = make(parent, 'button', 'term', name);
  button.type = 'button';
  button.setAttribute('aria-haspopup', 'dialog');
  button.addEventListener('click', () => {
    definition.replaceChildren();
    make(definition, 'strong', '', name);
    make(definition, 'p', '', meaning);
    definition.showPopover();
    const at = button.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, innerWidth - definition.offsetWidth - 8));
    const below = at.bottom + 4 + definition.offsetHeight < innerHeight;
    definition.style.left = `${left}px`;
    definition.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - 4 - definition.offsetHeight)}px`;
  });
}
