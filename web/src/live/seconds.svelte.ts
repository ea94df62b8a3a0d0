// A run or a bed that is watched: its document, and its seconds, of which only new ones are asked for.

import { get } from '../api/client.ts';
import { problemOf, type Problem } from '../api/problem.ts';
import type { BenchSecond } from '../api/types.ts';
import { joined } from '../lib/bench.ts';

const EVERY_MS = 1_000;

export class Watched<T extends { state: string; seconds?: BenchSecond[] }> {
  value = $state.raw<T>();
  seconds = $state.raw<BenchSecond[]>([]);
  problem = $state.raw<Problem>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private stopped = false;
  private readonly path: string;
  private readonly ended: string[];

  /** `ended`: states in which nothing changes any more. */
  constructor(path: string, ended: string[]) {
    this.path = path;
    this.ended = ended;
  }

  /** Begins, and returns how to end: for `$effect`. */
  run(): () => void {
    this.stopped = false;
    void this.ask();
    return () => {
      this.stopped = true;
      clearTimeout(this.timer);
    };
  }

  async ask(): Promise<void> {
    clearTimeout(this.timer);
    if (!document.hidden) {
      try {
        const since = this.seconds.at(-1)?.second ?? 0;
        const value = await get<T>(`${this.path}?since=${since}`);
        this.seconds = joined(this.seconds, value.seconds ?? []);
        this.value = value;
        this.problem = undefined;
      } catch (error) {
        this.problem = problemOf(error);
      }
    }
    if (this.stopped || (this.value && this.ended.includes(this.value.state))) return;
    this.timer = setTimeout(() => void this.ask(), EVERY_MS);
  }
}
