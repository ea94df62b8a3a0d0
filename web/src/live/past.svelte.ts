// What the daemon recorded of an object: its last minutes, days or year.

import type { Between } from '../lib/between.ts';
import { get } from '../api/client.ts';
import { FIGURES, live } from './live.svelte.ts';
import { Ring } from './ring.ts';

/** Up to this span, in seconds, the page's own memory is enough. */
export const LIVE_MAX = 1_800;
const POINTS = 600;

/** What is known of a point, by the daemon's names of metrics. */
export type Row = Record<string, number | undefined>;

/** A figure that is drawn: a metric by its name, or what is made of some. */
export interface Drawn {
  name: string;
  of: (row: Row) => number | undefined;
}

type Figure = (typeof FIGURES)[number];

/** The daemon's names of what the page draws live. */
const METRICS: Record<Figure, string> = {
  readIops: 'read_ops',
  writeIops: 'write_ops',
  readBytes: 'read_bytes',
  writeBytes: 'write_bytes',
  readP50: 'read_latency_p50',
  readP99: 'read_latency_p99',
  writeP50: 'write_latency_p50',
  writeP99: 'write_latency_p99',
  inFlight: 'in_flight',
};

const LIVE: Drawn[] = FIGURES.map((name) => ({ name, of: (row) => row[METRICS[name]] }));

export interface History {
  from: string;
  step: number;
  lines: { metric: string; mean: (number | null)[] }[];
}

/** The figures of an object over a span; empty until they are here. */
export class Past {
  ring: Ring = $state.raw(new Ring([], 1));
  /** Seconds of a point. */
  step = $state(1);
  /** The newest figures that are known. */
  newest: Row = $state.raw({});
  /** Nothing is recorded here, or not for who asks. */
  absent = $state(false);
  private readonly metrics: string[];
  private readonly drawn: Drawn[];

  /** Without arguments what the page draws live. */
  constructor(metrics: string[] = Object.values(METRICS), drawn: Drawn[] = LIVE) {
    this.metrics = metrics;
    this.drawn = drawn;
  }

  /** Asks now and whenever a point is over, until what is returned is called: for `$effect`. */
  follow(object: string, span: number, between?: Between): () => void {
    const left = new AbortController();
    const step = Math.max(1, Math.ceil((between ? between[1] - between[0] : span) / POINTS));
    const ask = () => void this.ask(object, between ?? [Math.floor(Date.now() / 1000) - span], step, left.signal);
    this.ring = new Ring(this.drawn.map((one) => one.name), 1);
    ask();
    // What is over does not change.
    const timer = between ? undefined : setInterval(ask, Math.max(10, Math.min(step, 300)) * 1000);
    return () => {
      left.abort();
      clearInterval(timer);
    };
  }

  private async ask(object: string, [from, to]: [number, number?], step: number, signal: AbortSignal): Promise<void> {
    const path = `history?object=${encodeURIComponent(object)}&metric=${this.metrics.join()}&from=${from}${to ? `&to=${to}` : ''}&step=${step}`;
    try {
      const history = await get<History>(path, signal);
      [this.ring, this.newest] = drawnOf(history, this.drawn);
      this.step = history.step;
      this.absent = false;
    } catch {
      if (!signal.aborted) this.absent = true;
    }
  }
}

/** Rings that know what was before the page was opened, and in so many holes. */
const recalled = new WeakMap<Ring, number>();

/** Puts what was recorded into a ring that the page fills live, once, and after each hole: for `$effect`. A page that was just opened has a past, too. */
export async function recall(object: string, ring: Ring): Promise<void> {
  const { holes } = live;
  if (recalled.get(ring) === holes) return;
  recalled.set(ring, holes);
  const from = Math.floor(Date.now() / 1000) - LIVE_MAX;
  const path = `history?object=${encodeURIComponent(object)}&metric=${Object.values(METRICS).join()}&from=${from}&step=${LIVE_MAX / POINTS}`;
  try {
    const [recorded] = drawnOf(await get<History>(path), LIVE);
    ring.recall(recorded);
  } catch {
    // It is not for who asks, or the daemon is away.
    recalled.delete(ring);
  }
}

/** What is drawn of an answer, and the newest of it. */
export function drawnOf(history: History, drawn: Drawn[]): [Ring, Row] {
  const count = Math.max(1, ...history.lines.map((line) => line.mean.length));
  const ring = new Ring(drawn.map((one) => one.name), count);
  const begin = new Date(history.from).getTime() / 1000;
  const newest: Row = {};
  for (let at = 0; at < count; at++) {
    const row: Row = Object.fromEntries(history.lines.map((line) => [line.metric, line.mean[at] ?? undefined]));
    const figures = drawn.map((one) => one.of(row));
    drawn.forEach((one, i) => {
      if (figures[i] !== undefined) newest[one.name] = figures[i];
    });
    ring.push(begin + at * history.step, figures);
  }
  return [ring, newest];
}
