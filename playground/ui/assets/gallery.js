// The chosen preset, and a list above the page that is fetched when it is opened. A click on an offer is an event; a
// click that asks for another tab is left to the browser.
const list = () => element.querySelector('.gallery');

async function open() {
  const box = list();
  const {locale} = element.querySelector('[data-locale]').dataset;
  box.setAttribute('aria-label', element.querySelector('.choose').textContent);
  box.showPopover();
  box.setAttribute('aria-busy', 'true');
  try {
    box.innerHTML = await server.listed(locale);
  } finally {
    box.removeAttribute('aria-busy');
  }
  box.querySelector('a')?.focus();
}

element.addEventListener('click', (event) => {
  if (event.target.closest('.choose')) return void open();
  if (event.target.closest('.close')) return list().hidePopover();
  const link = event.target.closest('a[href^="?"]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  list().hidePopover();
  const query = Object.fromEntries(new URLSearchParams(link.search));
  if (query.preset) showAddress('preset', query.preset);
  trigger('click', {query});
});
