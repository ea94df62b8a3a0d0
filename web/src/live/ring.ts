// The last minutes of some figures: a column for each, the oldest forgotten first.

/** Spans of time, in seconds, of which something is known: in their order, none in another one. */
export type Known = readonly (readonly [from: number, to: number])[];

export class Ring {
  readonly names: readonly string[];
  private readonly size: number;
  private readonly columns: Float64Array[];
  private begin = 0;
  private used = 0;
  private readonly gap: number;

  /** `names`: the figures; the first column is the time, in seconds. Between rows that are further apart than `gap` nothing is known. */
  constructor(names: readonly string[], size: number, gap = Infinity) {
    this.names = names;
    this.size = size;
    this.gap = gap;
    this.columns = [new Float64Array(size), ...names.map(() => new Float64Array(size))];
  }

  get length(): number {
    return this.used;
  }

  push(time: number, figures: (number | undefined)[]): void {
    const last = this.newest;
    // No line joins what is on both sides of it.
    if (last !== undefined && time - last > this.gap) this.put(last + 1, []);
    this.put(time, figures);
  }

  /** When it was told something last. */
  get newest(): number | undefined {
    return this.used ? this.columns[0]?.[(this.begin + this.used - 1) % this.size] : undefined;
  }

  private put(time: number, figures: (number | undefined)[]): void {
    const at = (this.begin + this.used) % this.size;
    if (this.used === this.size) this.begin = (this.begin + 1) % this.size;
    else this.used++;
    this.columns.forEach((column, i) => {
      column[at] = i === 0 ? time : (figures[i - 1] ?? NaN);
    });
  }

  /** Puts what was recorded in front of its oldest and into its holes, as far as there is room. */
  recall(recorded: Ring): void {
    const own = rowsOf(this).filter(([, figures]) => figures.some((one) => one !== null));
    const rows: typeof own = [];
    let before = -Infinity;
    let at = 0;
    const more = rowsOf(recorded, this.names);
    for (const row of own) {
      const [time] = row;
      const hole = time - before > this.gap || before === -Infinity;
      for (; (more[at]?.[0] ?? Infinity) < time; at++) if (hole && (more[at]?.[0] ?? 0) > before) rows.push(more[at]!);
      rows.push(row);
      before = time;
    }
    if (!own.length) rows.push(...more);
    this.begin = 0;
    this.used = 0;
    for (const [time, figures] of rows.slice(-this.size)) this.push(time, figures.map((one) => one ?? undefined));
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

  /** When anything was known, each row for so many seconds: spans with nothing known between them. */
  known(lasts: number): Known {
    const [time, ...figures] = this.columns;
    const spans: [number, number][] = [];
    for (let i = 0; i < this.used; i++) {
      const at = (this.begin + i) % this.size;
      if (figures.every((column) => Number.isNaN(column[at]))) continue;
      const begin = time?.[at] ?? 0;
      const last = spans.at(-1);
      if (last && begin <= last[1]) last[1] = begin + lasts;
      else spans.push([begin, begin + lasts]);
    }
    return spans;
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

type Row = [time: number, figures: (number | null)[]];

function rowsOf(ring: Ring, names = ring.names): Row[] {
  const [times, ...columns] = ring.read(names);
  return times.map((time, i) => [time, columns.map((column) => column[i] ?? null)]);
}

/** Means of so many seconds; where nothing is known of any of them, nothing is known. */
export function means([times, ...columns]: [number[], ...(number | null)[][]], step: number): [number[], ...(number | null)[][]] {
  const place = (time: number) => Math.floor(time / step) - Math.floor((times[0] ?? 0) / step);
  const begins = Array.from({ length: times.length && place(times.at(-1) ?? 0) + 1 }, (_, i) => (Math.floor((times[0] ?? 0) / step) + i) * step);
  const mean = (column: (number | null)[]) => {
    const sums = begins.map((): [number, number] => [0, 0]);
    column.forEach((value, i) => {
      const sum = sums[place(times[i] ?? 0)];
      if (value === null || !sum) return;
      sum[0] += value;
      sum[1]++;
    });
    return sums.map(([sum, count]) => (count ? sum / count : null));
  };
  return [begins, ...columns.map(mean)];
}
