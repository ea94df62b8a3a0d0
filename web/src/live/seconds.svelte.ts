// A run or a bed that is watched: its document, and its seconds, of which only new ones are asked for.

import type { BenchSecond } from '../api/types.ts';
import { joined } from '../lib/bench.ts';
import { Poll } from './poll.svelte.ts';

const EVERY_MS = 1_000;

export class Watched<T extends { state: string; seconds?: BenchSecond[] }> extends Poll<T> {
  seconds = $state.raw<BenchSecond[]>([]);

  /** `ended`: states in which nothing changes any more. */
  constructor(path: string, ended: string[]) {
    super(path, (value) => (value && ended.includes(value.state) ? undefined : EVERY_MS));
  }

  protected override query(): string {
    return `?since=${this.seconds.at(-1)?.second ?? 0}`;
  }

  protected override take(value: T): void {
    this.seconds = joined(this.seconds, value.seconds ?? []);
    super.take(value);
  }
}
