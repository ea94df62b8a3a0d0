// What happened to an object in the time that its charts show: from the log, and what the stream brings since.

import { get } from '../api/client.ts';
import type { NodeEvent } from '../api/types.ts';
import type { Between } from '../lib/between.ts';
import { entry } from '../lib/entry.svelte.ts';
import { marked, secondsOf, split } from '../lib/marks.ts';
import { lists } from './lists.svelte.ts';

/** So many of each question at most: of more the newest. */
const MOST = 1_000;
/** The stream brings what happens; where there is none it is not much later. */
const EVERY_MS = 60_000;

export interface Marked {
  events: NodeEvent[];
  /** Before this moment, in seconds since 1970, there are more than can be marked. */
  since?: number | undefined;
}

export class Marks {
  private object = $state('');
  private asked = $state.raw<NodeEvent[]>([]);
  private since = $state<number>();
  readonly shown: Marked = $derived({ events: marked(this.object, this.asked, lists.events ?? []).filter((event) => secondsOf(event) >= (this.since ?? 0)), since: this.since });

  /** Asks now and from time to time until what is returned is called: for `$effect`. */
  follow(object: string, span: number, between?: Between): () => void {
    // What was refused before a login is not any more.
    void entry.times;
    const left = new AbortController();
    const ask = () => void this.ask(object, between ?? [Math.floor(Date.now() / 1000) - span], left.signal);
    this.object = object;
    this.asked = [];
    this.since = undefined;
    ask();
    const timer = between ? undefined : setInterval(ask, EVERY_MS);
    return () => {
      left.abort();
      clearInterval(timer);
    };
  }

  private async ask(object: string, [from, to]: [number, number?], signal: AbortSignal): Promise<void> {
    const [kind = '', name = ''] = split(object);
    const own = object === 'node' ? '' : `&filter=kind:${kind}&filter=name:${encodeURIComponent(name)}`;
    const range = `from=${from}${to ? `&to=${to}` : ''}&limit=${MOST}`;
    try {
      const answers = await Promise.all([`least=warning${own}`, 'filter=kind:node'].map((which) => get<NodeEvent[]>(`events/log?${which}&${range}`, signal)));
      const cut = answers.filter((events) => events.length === MOST).map((events) => Math.min(...events.map(secondsOf)));
      this.since = cut.length ? Math.max(...cut) : undefined;
      this.asked = answers.flat();
    } catch {
      // It is not for who asks, or the daemon is away: what is known stays.
    }
  }
}
