// The last minutes of some figures: a column for each, the oldest forgotten first.

export class Ring {
  readonly names: readonly string[];
  private readonly size: number;
  private readonly columns: Float64Array[];
  private begin = 0;
  private used = 0;

  /** `names`: the figures; the first column is the time, in seconds. */
  constructor(names: readonly string[], size: number) {
    this.names = names;
    this.size = size;
    this.columns = [new Float64Array(size), ...names.map(() => new Float64Array(size))];
  }

  get length(): number {
    return this.used;
  }

  push(time: number, figures: (number | undefined)[]): void {
    const at = (this.begin + this.used) % this.size;
    if (this.used === this.size) this.begin = (this.begin + 1) % this.size;
    else this.used++;
    this.columns.forEach((column, i) => {
      column[at] = i === 0 ? time : (figures[i - 1] ?? NaN);
    });
  }

  /** Puts what was recorded before its oldest in front of it, as far as there is room. */
  recall(recorded: Ring): void {
    const [times, ...figures] = this.read(this.names);
    const [earlier, ...before] = recorded.read(this.names);
    const first = times[0] ?? Infinity;
    const count = earlier.filter((time) => time < first).length;
    const begin = Math.max(0, count - (this.size - times.length));
    const rows: [number, (number | undefined)[]][] = [];
    for (let i = begin; i < count; i++) rows.push([earlier[i] ?? 0, before.map((column) => column[i] ?? undefined)]);
    times.forEach((time, i) => rows.push([time, figures.map((column) => column[i] ?? undefined)]));
    this.begin = 0;
    this.used = 0;
    for (const [time, row] of rows) this.push(time, row);
  }

  /** When anything was known first; nothing: never. */
  since(): number | undefined {
    const [time, ...figures] = this.columns;
    for (let i = 0; i < this.used; i++) {
      const at = (this.begin + i) % this.size;
      if (figures.some((column) => !Number.isNaN(column[at]))) return time?.[at];
    }
    return undefined;
  }

  /** Time and the named figures since `from`, oldest first; a gap is `null`. */
  read(names: readonly string[], from = -Infinity): [number[], ...(number | null)[][]] {
    // A figure that it does not have is a gap, and not the time.
    const columns = names.map((name) => (this.names.includes(name) ? this.columns[this.names.indexOf(name) + 1] : undefined));
    const times: number[] = [];
    const out: (number | null)[][] = names.map(() => []);
    for (let i = 0; i < this.used; i++) {
      const at = (this.begin + i) % this.size;
      const time = this.columns[0]?.[at] ?? 0;
      if (time < from) continue;
      times.push(time);
      columns.forEach((column, c) => {
        const value = column?.[at];
        out[c]?.push(value === undefined || Number.isNaN(value) ? null : value);
      });
    }
    return [times, ...out];
  }
}
