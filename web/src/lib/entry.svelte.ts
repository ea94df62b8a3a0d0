// Who has logged in, and that somebody has to.

import type { Me } from '../api/types.ts';

class Entry {
  /** Grows with each login: what was refused before may be asked again. */
  times = $state(0);
  /** The login is asked for. */
  wanted = $state(false);
  who = $state.raw<Me>();
  /** Somebody was logged in, and is not any more. */
  ended = $state(false);
  /** Why it has ended, where more is known of it. */
  why = $state('');

  /** A request needs a login: from a click, or where the daemon says so. */
  ask(): void {
    // Each request of a session that is over asks: the first of them knows who it was.
    this.ended ||= this.who !== undefined;
    this.who = undefined;
    this.wanted = true;
  }
}

export const entry = new Entry();
