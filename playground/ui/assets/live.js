// What is followed sends this component's value.
if (props.live) {
  document.addEventListener(`live:${props.live}`, ({detail}) => { props.value = detail; });
}
