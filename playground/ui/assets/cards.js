// A click on a value opens its field; sides that have not been checked are, once nothing has changed for a moment.
const pause = 500;
const patience = 2500;
// What was left out during a run is tried again.
const again = 15_000;
let timer;

async function open(place) {
  const input = await find(place);
  input?.scrollIntoView({block: 'center'});
  input?.focus();
  input?.select?.();
}

function look() {
  if (element.querySelector('[data-unchecked]')) {
    trigger('submit');
    timer = setTimeout(() => {
      for (const check of element.querySelectorAll('[data-unchecked] .check')) check.textContent = check.title;
    }, patience);
  } else if (element.querySelector('[data-busy]')) {
    timer = setTimeout(() => {
      trigger('submit');
      look();
    }, again);
  }
}

// Once the framework has put the new text in, and nothing has changed for a moment.
function settle() {
  clearTimeout(timer);
  timer = setTimeout(look, pause);
}

element.addEventListener('click', ({target}) => {
  const button = target.closest('[data-at]');
  if (button) open(JSON.parse(button.dataset.at));
});
watch('value', settle);
settle();
