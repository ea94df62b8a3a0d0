// What the daemon recorded: the last hour, days or year of a node or a LUN.

import { get } from '../api/client.ts';
import { FIGURES } from './live.svelte.ts';
import { Ring } from './ring.ts';

/** Up to this span, in seconds, the page's own memory is enough. */
export const LIVE_MAX = 1_800;
const POINTS = 600;

type Figure = (typeof FIGURES)[number];

/** The daemon's names of what the page draws. */
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

interface History {
  from: string;
  step: number;
  lines: { metric: string; mean: (number | null)[] }[];
}

/** The figures of an object over a span; empty until they are here. */
export class Past {
  ring = $state.raw(new Ring(FIGURES, 1));
  /** Nothing is recorded here, or not for who asks. */
  absent = $state(false);

  /** Asks now and whenever a point is over, until what is returned is called: for `$effect`. */
  follow(object: string, span: number): () => void {
    const left = new AbortController();
    const step = Math.max(1, Math.ceil(span / POINTS));
    const ask = () => void this.ask(object, span, step, left.signal);
    this.ring = new Ring(FIGURES, 1);
    ask();
    const timer = setInterval(ask, Math.max(10, Math.min(step, 300)) * 1000);
    return () => {
      left.abort();
      clearInterval(timer);
    };
  }

  private async ask(object: string, span: number, step: number, signal: AbortSignal): Promise<void> {
    const metrics = FIGURES.map((figure) => METRICS[figure]).join(',');
    const from = Math.floor(Date.now() / 1000) - span;
    const path = `history?object=${encodeURIComponent(object)}&metric=${metrics}&from=${from}&step=${step}`;
    try {
      const history = await get<History>(path, signal);
      this.ring = ringOf(history);
      this.absent = false;
    } catch {
      if (!signal.aborted) this.absent = true;
    }
  }
}

function ringOf(history: History): Ring {
  const count = Math.max(1, ...history.lines.map((line) => line.mean.length));
  const ring = new Ring(FIGURES, count);
  const begin = new Date(history.from).getTime() / 1000;
  const by = new Map(history.lines.map((line) => [line.metric, line.mean]));
  for (let at = 0; at < count; at++) {
    ring.push(begin + at * history.step, FIGURES.map((figure) => by.get(METRICS[figure])?.[at] ?? undefined));
  }
  return ring;
}
