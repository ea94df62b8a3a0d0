import './styles/tokens.css';
import './styles/base.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { atOnce } from './lib/screens.ts';
import { lists } from './live/lists.svelte.ts';
import { live } from './live/live.svelte.ts';

// What is shown first is asked for before anything is drawn: the answers come while it is.
const shown = lists.show(...atOnce(location.pathname));
live.start();
const target = document.getElementById('page');
if (target) mount(App, { target });
// From here on each screen asks for what it shows.
setTimeout(shown);
