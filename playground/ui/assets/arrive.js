// Once the page has been filled for this visitor, what its address asks for is opened.
document.addEventListener('arrived', () => {
  const query = Object.fromEntries(new URLSearchParams(location.search));
  if (ours.some((name) => name in query)) trigger('click', {query});
});
