// How many commands took how long: what the daemon recorded of it.

import { get } from '../api/client.ts';
import type { Between } from '../lib/between.ts';
import { columnsOf, type Column, type RecordedMap } from '../lib/heat.ts';

/** No column is finer. */
const FINEST = 10;
const COLUMNS = 360;

/** A map of a LUN over a span; empty until it is here. */
export class PastMap {
  read = $state.raw<Column[]>([]);
  write = $state.raw<Column[]>([]);
  /** Seconds of a column; 0 while nothing is recorded. */
  step = $state(0);

  /** Asks now and whenever a column is over, until what is returned is called: for `$effect`. */
  follow(object: string, span: number, between?: Between): () => void {
    const left = new AbortController();
    const step = Math.max(FINEST, Math.ceil((between ? between[1] - between[0] : span) / COLUMNS));
    const ask = () => void this.ask(object, between ?? [Math.floor(Date.now() / 1000) - span], step, left.signal);
    ask();
    // What is over does not change.
    const timer = between ? undefined : setInterval(ask, Math.min(step, 300) * 1000);
    return () => {
      left.abort();
      clearInterval(timer);
    };
  }

  private async ask(object: string, [from, to]: [number, number?], step: number, signal: AbortSignal): Promise<void> {
    try {
      const map = await get<RecordedMap>(`history/latency?object=${encodeURIComponent(object)}&from=${from}${to ? `&to=${to}` : ''}&step=${step}`, signal);
      this.read = columnsOf(map, map.read);
      this.write = columnsOf(map, map.write);
      this.step = map.step;
    } catch {
      // It is not for who asks, or the daemon is away: what was seen since the page was opened is shown.
    }
  }
}
