// One document, asked for again and again while it is shown.

import { get } from '../api/client.ts';
import { problemOf, type Problem } from '../api/problem.ts';

export class Poll<T> {
  value = $state.raw<T>();
  problem = $state.raw<Problem>();
  private stopped = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly path: string;
  private readonly every: (value: T | undefined) => number;

  /** `every`: milliseconds from an answer to the next question, by what the answer was where that matters. */
  constructor(path: string, every: number | ((value: T | undefined) => number)) {
    this.path = path;
    this.every = typeof every === 'number' ? () => every : every;
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
        this.value = await get<T>(this.path);
        this.problem = undefined;
      } catch (error) {
        this.problem = problemOf(error);
      }
    }
    if (!this.stopped) this.timer = setTimeout(() => void this.ask(), this.every(this.value));
  }
}
