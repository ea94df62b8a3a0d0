// The topology as rows of a file. Pure.

import type { Column } from './columns.ts';
import { topology, WORDS, type Edge, type Facts, type Point } from './topology.ts';

export interface Line {
  from: Point;
  to: Point;
  edge: Edge;
}

export const LINES: Column<Line>[] = [
  { key: 'from_kind', title: 'From', value: ({ from }) => WORDS[from.kind] },
  { key: 'from', title: 'Name', value: ({ from }) => from.name },
  { key: 'to_kind', title: 'To', value: ({ to }) => WORDS[to.kind] },
  { key: 'to', title: 'Name', value: ({ to }) => to.name },
  { key: 'state', title: 'State', value: ({ edge }) => edge.wrong ?? (edge.standby ? 'stands by' : edge.state) },
  { key: 'bytes_per_second', title: 'Bytes a second', value: ({ edge }) => (edge.unknown ? 'not known' : Math.round(edge.bytes)) },
  { key: 'p99_us', title: 'p99, µs', value: ({ edge }) => edge.p99 },
  { key: 'says', title: 'What it is', value: ({ edge }) => edge.says },
];

export const PARTS: Column<Point>[] = [
  { key: 'kind', title: 'Kind', value: (one) => WORDS[one.kind] },
  { key: 'name', title: 'Name', value: (one) => one.name },
  { key: 'state', title: 'State', value: (one) => one.state },
  { key: 'word', title: 'In words', value: (one) => one.word },
  { key: 'detail', title: 'More', value: (one) => one.detail },
];

/** All parts and lines that fit the filter, also those that are not drawn. */
export function rowsOf(facts: Facts, filter: string): { parts: Point[]; lines: Line[] } {
  const { points, edges } = topology(facts, filter, {}, Infinity);
  const at = new Map(points.map((point) => [point.id, point]));
  const lines = edges.flatMap((edge): Line[] => {
    const [from, to] = [at.get(edge.from), at.get(edge.to)];
    return from && to ? [{ from, to, edge }] : [];
  });
  return { parts: points, lines };
}
