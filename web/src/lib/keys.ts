// The keyboard: Ctrl-K searches, `g` and a letter goes to a screen, `/` filters what is shown, `?` says all of this.

import type { Screen } from './screens.ts';

/** So long after `g` a letter belongs to it, in milliseconds. */
const PAIR_MS = 1_200;
/** So long letters wait for the search, in milliseconds. */
const LOADED_MS = 5_000;

export interface Acts {
  search(): void;
  /** Says which keys there are. */
  help(): void;
  go(path: string): void;
}

export class Keys {
  private pair = -Infinity;
  /** What was typed since the search was asked for: it is loaded when it is wanted for the first time. */
  private ahead = '';
  private since = -Infinity;
  private readonly acts: Acts;
  private readonly screens: Screen[];

  constructor(acts: Acts, screens: Screen[]) {
    this.acts = acts;
    this.screens = screens;
  }

  search(now: number): void {
    this.ahead = '';
    this.since = now;
    this.acts.search();
  }

  /** What was typed before there was a field for it. */
  take(): string {
    this.since = -Infinity;
    return this.ahead;
  }

  press(event: KeyboardEvent): void {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      this.search(event.timeStamp);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.timeStamp - this.since < LOADED_MS && !document.querySelector('dialog[open]')) {
      event.preventDefault();
      if (event.key.length === 1) this.ahead += event.key;
      else if (event.key === 'Backspace') this.ahead = this.ahead.slice(0, -1);
      return;
    }
    if (writes(event.target) || document.querySelector('dialog[open]')) return;
    if (event.key === '/') {
      const filter = document.querySelector<HTMLInputElement>('input[type=search]');
      if (!filter) return;
      event.preventDefault();
      filter.focus();
    } else if (event.key === '?') {
      event.preventDefault();
      this.acts.help();
    } else if (event.key === 'g') {
      this.pair = event.timeStamp;
    } else if (event.timeStamp - this.pair < PAIR_MS) {
      this.pair = -Infinity;
      const screen = this.screens.find((one) => one.key === event.key);
      if (screen) this.acts.go(screen.path);
    }
  }
}

function writes(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select') !== null;
}
