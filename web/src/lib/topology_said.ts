// What is said of a part of the topology and of a line: the map and the list say the same. Pure.

import { bytes, latency, rate } from './format.ts';
import type { Edge, Point, Topology } from './topology.ts';
import type { State } from './verdict.ts';

/** Something flows, and how much of it is counted nowhere. */
const UNKNOWN = 'flow unknown';

export interface Said {
  state: State;
  word: string;
  /** What flows there; empty where that is nothing. */
  flow: string;
}

/** Bytes a second of each part; nothing of a part that gets some of which nobody knows how much. */
export function flowsOf({ points, edges }: Topology): Map<string, number | undefined> {
  const sums = new Map<string, number | undefined>();
  const add = (id: string, more: number | undefined) => {
    const known = sums.has(id) ? sums.get(id) : 0;
    sums.set(id, known === undefined || more === undefined ? undefined : known + more);
  };
  for (const edge of edges) {
    // What comes into a part; hosts have only what leaves them.
    add(edge.to, edge.unknown ? undefined : edge.bytes);
    if (edge.from.startsWith('host:') || edge.from === 'more:host') add(edge.from, edge.bytes);
  }
  // Networks, NICs and cards have what their portals and NICs have together.
  for (const point of points) for (const id of framesOf(point)) add(id, sums.has(point.id) ? sums.get(point.id) : 0);
  return sums;
}

/** What is around a part, the outermost first. */
export function framesOf(point: Point): string[] {
  return [...(point.network ? [point.network] : []), ...(point.within ?? [])];
}

/** `lost`: what would be lost without the part that somebody has chosen. */
export function partSaid(point: Point, flows: Map<string, number | undefined>, lost?: Set<string>): Said {
  const isLost = lost?.has(point.id) ?? false;
  const sum = flows.has(point.id) ? flows.get(point.id) : 0;
  const flow = sum === undefined ? UNKNOWN : sum > 0 ? `${bytes(sum)}/s` : '';
  return isLost ? { state: 'bad', word: 'lost', flow } : { state: point.state, word: point.word, flow };
}

/** A line is lost with either of its ends. */
export function isLineLost(edge: Edge, lost: Set<string> | undefined): boolean {
  return lost !== undefined && (lost.has(edge.from) || lost.has(edge.to));
}

export function lineSaid(edge: Edge, lost?: Set<string>): Said {
  const p99 = edge.p99 === undefined ? '' : `, p99 ${latency(edge.p99)}`;
  const flow = (edge.unknown ? UNKNOWN : rate(edge.bytes)) + p99;
  if (isLineLost(edge, lost)) return { state: 'bad', word: 'lost', flow };
  return { state: edge.standby && edge.state === 'good' ? 'off' : edge.state, word: edge.says, flow };
}
