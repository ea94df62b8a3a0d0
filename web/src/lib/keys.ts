// The keyboard: Ctrl-K searches, `g` and a letter goes to a screen, `/` filters what is shown.

import type { Screen } from './screens.ts';

/** So long after `g` a letter belongs to it, in milliseconds. */
const PAIR_MS = 1_200;

export interface Acts {
  search(): void;
  go(path: string): void;
}

export class Keys {
  private pair = -Infinity;
  private readonly acts: Acts;
  private readonly screens: Screen[];

  constructor(acts: Acts, screens: Screen[]) {
    this.acts = acts;
    this.screens = screens;
  }

  press(event: KeyboardEvent): void {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      this.acts.search();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || writes(event.target) || document.querySelector('dialog[open]')) return;
    if (event.key === '/') {
      const filter = document.querySelector<HTMLInputElement>('input[type=search]');
      if (!filter) return;
      event.preventDefault();
      filter.focus();
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
