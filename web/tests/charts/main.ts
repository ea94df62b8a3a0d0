import '../../src/styles/tokens.css';
import '../../src/styles/base.css';
import { mount } from 'svelte';
import Twelve from './Twelve.svelte';

const target = document.getElementById('page');
if (target) mount(Twelve, { target });
