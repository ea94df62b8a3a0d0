// A heat map: time across, latency up, how many commands by colour. Pure: whoever has columns, live or from a
// history, draws them.

import type { Buckets } from '../api/types.ts';
import type { Known } from '../live/ring.ts';

/** How many commands took how long, in some span of time. */
export interface Column {
  /** Seconds since 1970. */
  at: number;
  /** By rows: see `rowOf`. */
  counts: ArrayLike<number>;
}

/** Each row is twice as long as the one below it: 1 µs to 8 s. */
export const ROWS = 24;

/** The row of commands that took no longer than `us`. */
export function rowOf(us: number): number {
  return Math.min(ROWS - 1, Math.max(0, Math.ceil(Math.log2(Math.max(1, us)))));
}

/** The longest time of a row, in microseconds. */
export function longestOf(row: number): number {
  return 2 ** row;
}

export function countsOf(buckets: Buckets): Uint32Array {
  const counts = new Uint32Array(ROWS);
  for (const [bound, n] of buckets) {
    const row = rowOf(bound);
    counts[row] = (counts[row] ?? 0) + n;
  }
  return counts;
}

/** What the daemon answers: cells of column, row and how many. */
export interface RecordedMap {
  from: string;
  step: number;
  bounds_us: number[];
  read: [number, number, number][];
  write: [number, number, number][];
}

/** Cells as columns, each in the middle of its time. */
export function columnsOf(map: RecordedMap, cells: [number, number, number][]): Column[] {
  const begin = new Date(map.from).getTime() / 1000;
  const columns = new Map<number, Uint32Array>();
  for (const [column, row, n] of cells) {
    const counts = columns.get(column) ?? new Uint32Array(ROWS);
    const at = rowOf(map.bounds_us[row] ?? 1);
    counts[at] = (counts[at] ?? 0) + n;
    columns.set(column, counts);
  }
  return [...columns].sort((a, b) => a[0] - b[0]).map(([column, counts]) => ({ at: begin + (column + 0.5) * map.step, counts }));
}

/** What was recorded, and after it what was seen since. */
export function joined(recorded: Column[], step: number, seen: Column[]): Column[] {
  const end = (recorded.at(-1)?.at ?? -Infinity) + step / 2;
  return [...recorded, ...seen.filter((column) => column.at >= end)];
}

/** Columns of the same time together. */
export function together(all: Column[]): Column[] {
  const sums = new Map<number, Uint32Array>();
  for (const { at, counts } of all) {
    const sum = sums.get(at) ?? new Uint32Array(ROWS);
    for (let row = 0; row < ROWS; row++) sum[row] = (sum[row] ?? 0) + (counts[row] ?? 0);
    sums.set(at, sum);
  }
  return [...sums].sort((a, b) => a[0] - b[0]).map(([at, counts]) => ({ at, counts }));
}

export interface Cell {
  column: number;
  row: number;
  n: number;
  /** 0 to 1: as bright as it is drawn. Few among many are still seen. */
  heat: number;
}

export interface Heat {
  /** Where each drawn column begins, in seconds. */
  starts: number[];
  cells: Cell[];
  /** Rows between which something is. */
  lowest: number;
  highest: number;
  most: number;
}

/** `columns` as `wide` drawn ones, from `from` to `to`. */
export function heat(columns: Column[], from: number, to: number, wide: number): Heat {
  const sums = Array.from({ length: wide }, () => new Float64Array(ROWS));
  const step = (to - from) / wide;
  for (const { at, counts } of columns) {
    const sum = sums[Math.floor((at - from) / step)];
    for (let row = 0; sum && row < ROWS; row++) sum[row] = (sum[row] ?? 0) + (counts[row] ?? 0);
  }
  const most = Math.max(0, ...sums.map((sum) => Math.max(...sum)));
  const cells: Cell[] = [];
  sums.forEach((sum, column) => {
    sum.forEach((n, row) => {
      if (n > 0) cells.push({ column, row, n, heat: Math.log1p(n) / Math.log1p(most) });
    });
  });
  const rows = cells.map((cell) => cell.row);
  return {
    starts: sums.map((_, i) => from + i * step),
    cells,
    lowest: rows.length ? Math.min(...rows) : 0,
    highest: rows.length ? Math.max(...rows) : 0,
    most,
  };
}

/** The drawn columns of which nothing is known, as spans of them: no command and nothing recorded are not the same. */
export function unknown({ starts, cells }: Heat, each: number, known: Known): [first: number, behind: number][] {
  const seen = new Set(cells.map((cell) => cell.column));
  const spans: [number, number][] = [];
  starts.forEach((start, column) => {
    if (seen.has(column) || known.some(([from, to]) => from < start + each && to > start)) return;
    const last = spans.at(-1);
    if (last?.[1] === column) last[1]++;
    else spans.push([column, column + 1]);
  });
  return spans;
}

/** What is known, up to now where the last of it is not older than `patience` seconds: more is on its way. */
export function upToNow(known: Known, now: number, patience: number): Known {
  const last = known.at(-1);
  return last && last[1] < now && now - last[1] <= patience ? [...known.slice(0, -1), [last[0], now]] : known;
}

/** The map as a table: every drawn column in which something is, the newest first, its rows from the fastest on. */
export function tableOf(map: Heat): { at: number; cells: [longest: number, n: number][] }[] {
  const rows = new Map<number, [number, number][]>();
  for (const { column, row, n } of map.cells) rows.set(column, [...(rows.get(column) ?? []), [longestOf(row), n]]);
  return [...rows].sort((a, b) => b[0] - a[0]).map(([column, cells]) => ({ at: map.starts[column] ?? 0, cells }));
}
