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

export interface Layout {
  at: Map<string, Placed>;
  /** Where each column begins. */
  columns: number[];
  width: number;
  height: number;
}

const TOP = 24;
const BOX = 56;
const PITCH = 66;
const NODE_WIDTH = 104;
const LEAST_WIDTH = 880;
const LEAST_HEIGHT = 340;
/** Boxes of a column are no further apart, in pixels. */
const WIDEST_PITCH = 110;

/** Disks have a column where some are known. */
export function columnsOf(points: Point[]): Kind[] {
  return COLUMNS.filter((kind) => kind !== 'disk' || points.some((point) => point.kind === 'disk'));
}

export function place(points: Point[], available: number): Layout {
  const width = Math.max(LEAST_WIDTH, Math.floor(available));
  const columns = new Map<Kind, Point[]>(columnsOf(points).map((kind) => [kind, points.filter((point) => point.kind === kind)]));
  const most = Math.max(...[...columns.values()].map((column) => column.length), 1);
  const height = Math.max(LEAST_HEIGHT, TOP + most * PITCH);
  const others = columns.size - 1;
  // Most of what is left goes to boxes, the rest to the lines between them.
  const box = Math.min(230, Math.floor(((width - NODE_WIDTH) * 0.72) / others));
  const gap = (width - NODE_WIDTH - box * others) / others;
  const at = new Map<string, Placed>();
  const starts: number[] = [];
  let x = 0;
  for (const [kind, column] of columns) {
    starts.push(Math.round(x));
    const tall = kind === 'node';
    const own = tall ? NODE_WIDTH : box;
    const pitch = Math.min(WIDEST_PITCH, (height - TOP) / Math.max(1, column.length));
    column.forEach((point, i) => {
      const y = tall ? TOP : TOP + i * pitch;
      at.set(point.id, { x: Math.round(x), y: Math.round(y), width: own, height: tall ? height - TOP : BOX, tall });
    });
    x += own + gap;
  }
  return { at, columns: starts, width, height };
}

/** Of a line, in pixels: each tenfold of bytes a second is as much wider. */
export function widthOf(bytes: number): number {
  return bytes < 1 ? 1.25 : Math.min(12, 1.5 + Math.max(0, Math.log10(bytes) - 3) * 1.5);
}
