// For a meeting room: a class on the page, and present.css leaves only answers, speeds, a chart and a sentence. The
// address keeps it (`?present=1`), so that it can be sent.
// Gradio lets a style sheet reach only what is inside its container, so the class is there.
const page = element.closest('.contain').firstElementChild;
const presenting = () => page.classList.contains('presenting');

function present(on) {
  page.classList.toggle('presenting', on);
  const address = new URL(location);
  if (on) address.searchParams.set('present', '1');
  else address.searchParams.delete('present');
  window.history.replaceState(window.history.state, '', address);
}

// The header's text changes with the visitor's language, so its button is found when it is clicked.
element.addEventListener('click', ({target}) => {
  if (target.closest('.present')) present(!presenting());
});
document.addEventListener('keydown', ({key}) => {
  if (key === 'Escape' && presenting()) present(false);
});
if (new URLSearchParams(location.search).get('present') === '1') present(true);
