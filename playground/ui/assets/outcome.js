// A sweep's outcome: the buttons of what deploys its recommended engine. The text comes as HTML, so clicks are caught here.
element.addEventListener('click', (event) => {
  const button = event.target.closest('.snippet button');
  if (button) copy(button, button.parentElement.nextElementSibling.firstElementChild, button.dataset.copied);
});
