// The topology as a list: each part and each line of the map, in the order of its columns. Pure.

import { grouped } from './grouped.ts';
import type { Mistake } from './mistakes.ts';
import { TITLES, type Edge, type Kind, type Point, type Topology } from './topology.ts';
import { framesOf } from './topology_said.ts';

/** A line to a part that has its own row elsewhere. */
export interface Onward {
  to: Point;
  edge: Edge;
}

export interface Row {
  point: Point;
  /** That joins it to the part which it stands below, or to the node. */
  line?: Edge | undefined;
  onward: Onward[];
  /** What is in it, or belongs to it. */
  rows: Row[];
  mistakes: Mistake[];
}

export interface Chapter {
  kind: Kind;
  title: string;
  rows: Row[];
}

export function listOf({ points, edges, mistakes }: Topology): Chapter[] {
  const byId = new Map(points.map((point) => [point.id, point]));
  const order = new Map(points.map((point, i) => [point.id, i]));
  const leaving = grouped(edges, (edge) => edge.from);
  const coming = grouped(edges, (edge) => edge.to);
  const onwardOf = (id: string) => (leaving.get(id) ?? []).flatMap((edge): Onward[] => {
    const to = byId.get(edge.to);
    return to && to.kind !== 'node' ? [{ to, edge }] : [];
  });
  const row = (point: Point, line?: Edge): Row => ({ point, line, onward: point.kind === 'node' ? [] : onwardOf(point.id), rows: [], mistakes: [] });

  /** Parts below the frames around them. */
  function framed(rows: Row[], depth = 0): Row[] {
    return [...grouped(rows, (one) => framesOf(one.point)[depth] ?? one.point.id)].flatMap(([id, own]) => {
      const frame = own.some((one) => one.point.id === id) ? undefined : byId.get(id);
      return frame ? [{ point: frame, onward: [], rows: framed(own, depth + 1), mistakes: [] }] : own;
    });
  }

  function host(point: Point): Row {
    const [nics, others] = [onwardOf(point.id).filter(({ to }) => to.kind === 'port'), onwardOf(point.id).filter(({ to }) => to.kind !== 'port')];
    const own = nics.sort((a, b) => (order.get(a.to.id) ?? 0) - (order.get(b.to.id) ?? 0)).map(({ to, edge }) => row(to, edge));
    const sessions = new Set((leaving.get(point.id) ?? []).flatMap((edge) => edge.sessions ?? []));
    return { point, onward: others, rows: framed(own), mistakes: mistakes.filter((one) => one.sessions.some((id) => sessions.has(id))) };
  }

  const of = (kind: Kind) => points.filter((point) => point.kind === kind);
  const toNode = (point: Point) => leaving.get(point.id)?.find((edge) => byId.get(edge.to)?.kind === 'node');
  const fromNode = (point: Point) => coming.get(point.id)?.find((edge) => byId.get(edge.from)?.kind === 'node');
  return [
    { kind: 'host', title: 'Hosts and their NICs', rows: of('host').map(host) },
    { kind: 'portal', title: 'Networks and portals', rows: framed(of('portal').map((point) => row(point, toNode(point)))) },
    { kind: 'node', title: TITLES.node ?? '', rows: of('node').map((point) => row(point)) },
    { kind: 'lun', title: TITLES.lun ?? '', rows: of('lun').map((point) => row(point, fromNode(point))) },
    { kind: 'pool', title: TITLES.pool ?? '', rows: of('pool').map((point) => row(point)) },
    { kind: 'disk', title: TITLES.disk ?? '', rows: of('disk').map((point) => row(point)) },
  ];
}
