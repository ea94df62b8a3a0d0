// One document, asked for again and again while it is shown.

import { get } from '../api/client.ts';
import { problemOf, type Problem } from '../api/problem.ts';

/** Milliseconds from an answer to the next question; `undefined`: there is none any more. */
type Every<T> = (value: T | undefined) => number | undefined;

export class Poll<T> {
  value = $state.raw<T>();
  problem = $state.raw<Problem>();
  private stopped = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly path: string;
  private readonly every: Every<T>;

  /** `every`: milliseconds from an answer to the next question, by what the answer was where that matters. */
  constructor(path: string, every: number | Every<T>) {
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
        this.take(await get<T>(this.path + this.query()));
        this.problem = undefined;
      } catch (error) {
        this.problem = problemOf(error);
      }
    }
    const next = this.every(this.value);
    if (!this.stopped && next !== undefined) this.timer = setTimeout(() => void this.ask(), next);
  }

  /** What stands behind the path, where it is another one each time. */
  protected query(): string {
    return '';
  }

  protected take(value: T): void {
    this.value = value;
  }
}
