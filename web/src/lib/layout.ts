// Where the map's boxes stand: by column and order alone, so that nothing jumps. Pure.

import { COLUMNS, type Kind, type Point } from './topology.ts';

export interface Placed {
  x: number;
  y: number;
  width: number;
  height: number;
  /** It takes the whole height. */
  tall: boolean;
}

/** A card or NIC around what it carries; one whose parts do not stand together is drawn twice. */
export interface Frame extends Omit<Placed, 'tall'> {
  id: string;
  key: string;
}

export interface Layout {
  at: Map<string, Placed>;
  frames: Frame[];
  /** What has a column, and where it begins. */
  columns: { kind: Kind; x: number }[];
  width: number;
  height: number;
}

const TOP = 30;
/** Four lines, and some air above and below: a state may need two of them, and so may an address. */
const BOX = 70;
const PITCH = 78;
/** The head of a frame, which says what it is, and its margin. */
export const HEAD = 26;
const INSET = 4;
const NODE_WIDTH = 96;
const NETWORK_WIDTH = 84;
const LEAST_WIDTH = 1000;
const LEAST_HEIGHT = 340;
/** Boxes of a column are no further apart, in pixels. */
const WIDEST_PITCH = 110;

/** Networks and disks have a column where some are known. */
export function columnsOf(points: Point[]): Kind[] {
  return COLUMNS.filter((kind) => (kind !== 'disk' && kind !== 'network') || points.some((point) => point.kind === kind));
}

/** Heads of frames that begin at a point: those that the one before it is not in. */
function begins(column: Point[], i: number): string[] {
  const [own, before] = [column[i]?.within ?? [], i > 0 ? column[i - 1] : undefined];
  const same = before?.network === column[i]?.network ? (before?.within ?? []) : [];
  const shared = own.findIndex((id, depth) => same[depth] !== id);
  return shared < 0 ? [] : own.slice(shared);
}

const natural = (column: Point[]) => column.reduce((sum, _, i) => sum + PITCH + begins(column, i).length * HEAD, 0);

export function place(points: Point[], available: number): Layout {
  const width = Math.max(LEAST_WIDTH, Math.floor(available));
  const columns = new Map<Kind, Point[]>(columnsOf(points).map((kind) => [kind, points.filter((point) => point.kind === kind)]));
  const stacked = [...columns].filter(([kind]) => kind !== 'network');
  const height = Math.max(LEAST_HEIGHT, TOP + Math.max(...stacked.map(([, column]) => natural(column)), 0));
  const narrow = NODE_WIDTH + (columns.has('network') ? NETWORK_WIDTH : 0);
  const others = columns.size - (columns.has('network') ? 2 : 1);
  // Most of what is left goes to boxes, the rest to the lines between them.
  const box = Math.min(230, Math.floor(((width - narrow) * 0.73) / others));
  // Paths come together before their network: there the lines have twice the room.
  const gap = (width - narrow - box * others) / (columns.size - (columns.has('network') ? 0 : 1));
  const at = new Map<string, Placed>();
  const frames: Frame[] = [];
  const starts: Layout['columns'] = [];
  let x = 0;
  for (const [kind, column] of columns) {
    starts.push({ kind, x: Math.round(x) });
    const own = kind === 'node' ? NODE_WIDTH : kind === 'network' ? NETWORK_WIDTH : box;
    if (kind === 'node') column.forEach((point) => at.set(point.id, { x: Math.round(x), y: TOP, width: own, height: height - TOP, tall: true }));
    else if (kind !== 'network') stack(column, { x: Math.round(x), width: own, height }, at, frames);
    x += own + (kind === 'port' && columns.has('network') ? 2 : 1) * gap;
  }
  spanNetworks(columns, starts, at, frames);
  return { at, frames, columns: starts, width, height };
}

function stack(column: Point[], into: { x: number; width: number; height: number }, at: Map<string, Placed>, frames: Frame[]) {
  const spare = (into.height - TOP - natural(column)) / Math.max(1, column.length);
  const pitch = PITCH + Math.max(0, Math.min(WIDEST_PITCH - PITCH, spare));
  let y = TOP;
  const open: Frame[] = [];
  column.forEach((point, i) => {
    const heads = begins(column, i);
    const depth = (point.within ?? []).length;
    open.splice(depth - heads.length);
    for (const id of heads) {
      const inset = open.length * INSET;
      const frame = { id, key: `${id}@${frames.length}`, x: into.x + inset, y: Math.round(y), width: into.width - 2 * inset, height: HEAD };
      frames.push(frame);
      open.push(frame);
      y += HEAD;
    }
    const inset = depth * INSET;
    at.set(point.id, { x: into.x + inset, y: Math.round(y), width: into.width - 2 * inset, height: BOX, tall: false });
    open.forEach((frame, i) => (frame.height = Math.round(y) + BOX + (open.length - i) * 2 - frame.y));
    y += pitch;
  });
}

/** A network is as tall as the portals in it. */
function spanNetworks(columns: Map<Kind, Point[]>, starts: Layout['columns'], at: Map<string, Placed>, frames: Frame[]) {
  const x = starts.find((column) => column.kind === 'network')?.x ?? 0;
  const portals = columns.get('portal') ?? [];
  for (const network of columns.get('network') ?? []) {
    const own = portals.filter((portal) => portal.network === network.id);
    const held = new Set(own.flatMap((portal) => portal.within ?? []));
    const boxes = [...own.flatMap((portal) => at.get(portal.id) ?? [])];
    const [first, last] = [boxes[0], boxes.at(-1)];
    if (!first || !last) continue;
    const heads = frames.filter((frame) => held.has(frame.id) && frame.y < first.y && frame.y + frame.height > first.y).map((frame) => frame.y);
    const top = Math.min(first.y, ...heads);
    at.set(network.id, { x, y: top, width: NETWORK_WIDTH, height: last.y + last.height - top, tall: false });
  }
}

/** Of a line, in pixels: each tenfold of bytes a second is as much wider. */
export function widthOf(bytes: number): number {
  return bytes < 1 ? 1.25 : Math.min(12, 1.5 + Math.max(0, Math.log10(bytes) - 3) * 1.5);
}
