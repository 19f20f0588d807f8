// A click on a value opens its field; sides that have not been checked are, once nothing has changed for a moment.
const pause = 500;
const patience = 2500;
let timer;

async function open(place) {
  const input = await find(place);
  input?.scrollIntoView({block: 'center'});
  input?.focus();
  input?.select?.();
}

function settle() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (!element.querySelector('[data-unchecked]')) return;
    trigger('submit');
    timer = setTimeout(() => {
      for (const check of element.querySelectorAll('[data-unchecked] .check')) check.textContent = check.title;
    }, patience);
  }, pause);
}

element.addEventListener('click', ({target}) => {
  const button = target.closest('[data-at]');
  if (button) open(JSON.parse(button.dataset.at));
});
watch('value', settle);
settle();
