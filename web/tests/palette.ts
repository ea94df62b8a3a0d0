// A picture of a screen with 256 colours: a third of the bytes, and nobody sees it. PNG (ISO/IEC 15948) in and out.

import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS = 256;
const TURNS = 3;
/** A colour of so many points is a surface, and stays as it is. */
const FLAT = 2_000;
/** Of a picture without an alpha channel, and with one. */
const RGB = 2;
const RGBA = 6;
const INDEXED = 3;

interface Picture {
  width: number;
  height: number;
  /** A number for each point: red, green, blue. */
  points: Uint32Array;
}

export function withFewColours(png: Buffer): Buffer {
  const picture = decoded(png);
  const counts = new Map<number, number>();
  for (const point of picture.points) counts.set(point, (counts.get(point) ?? 0) + 1);
  const palette = chosen(counts);
  const places = new Map([...counts.keys()].map((colour) => [colour, nearest(palette, colour)]));
  return encoded(picture, palette, places);
}

/** The most frequent colours, of which no two are so near to each other that one of them would do. */
function chosen(counts: Map<number, number>): number[] {
  const all = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  if (all.length <= COLOURS) return all;
  for (let apart = 3; ; apart *= 1.35) {
    const palette: number[] = [];
    for (const colour of all) {
      if (palette.every((known) => distance(known, colour) > apart)) palette.push(colour);
      if (palette.length > COLOURS) break;
    }
    if (palette.length <= COLOURS) return settled(palette, counts);
  }
}

/** Each colour of the palette becomes the middle of those that it stands for. */
function settled(palette: number[], counts: Map<number, number>): number[] {
  for (let turn = 0; turn < TURNS; turn++) {
    const sums = palette.map(() => [0, 0, 0, 0] as [number, number, number, number]);
    for (const [colour, count] of counts) {
      const sum = sums[nearest(palette, colour)]!;
      // What is seldom counts more than its points: it is an edge or a shade.
      const weight = Math.sqrt(count);
      sum[0] += weight * (colour >> 16);
      sum[1] += weight * ((colour >> 8) & 255);
      sum[2] += weight * (colour & 255);
      sum[3] += weight;
    }
    palette = palette.map((colour, i) => {
      const [red, green, blue, all] = sums[i]!;
      if (all === 0 || counts.get(colour)! > FLAT) return colour;
      return (Math.round(red / all) << 16) | (Math.round(green / all) << 8) | Math.round(blue / all);
    });
  }
  return palette;
}

function distance(a: number, b: number): number {
  const [red, green, blue] = [16, 8, 0].map((shift) => ((a >> shift) & 255) - ((b >> shift) & 255));
  return 2 * red! * red! + 4 * green! * green! + blue! * blue!;
}

function nearest(palette: number[], colour: number): number {
  let best = 0;
  for (let i = 1; i < palette.length; i++) if (distance(palette[i]!, colour) < distance(palette[best]!, colour)) best = i;
  return best;
}

function decoded(png: Buffer): Picture {
  const data: Buffer[] = [];
  let [width, height, kind] = [0, 0, 0];
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const name = png.toString('latin1', at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (name === 'IHDR') [width, height, kind] = [body.readUInt32BE(0), body.readUInt32BE(4), body[9]!];
    if (name === 'IDAT') data.push(body);
    at += 12 + length;
  }
  if (kind !== RGB && kind !== RGBA) throw new Error(`a PNG of kind ${kind}`);
  const size = kind === RGB ? 3 : 4;
  const rows = unfiltered(inflateSync(Buffer.concat(data)), width * size, height, size);
  const points = Uint32Array.from({ length: width * height }, (_, i) => (rows[i * size]! << 16) | (rows[i * size + 1]! << 8) | rows[i * size + 2]!);
  return { width, height, points };
}

/** Each row says by which of its neighbours its bytes are told. */
function unfiltered(raw: Buffer, stride: number, height: number, size: number): Uint8Array {
  const out = new Uint8Array(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)]!;
    for (let x = 0; x < stride; x++) {
      const left = x >= size ? out[y * stride + x - size]! : 0;
      const up = y > 0 ? out[(y - 1) * stride + x]! : 0;
      const corner = x >= size && y > 0 ? out[(y - 1) * stride + x - size]! : 0;
      const told = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter]!;
      out[y * stride + x] = raw[y * (stride + 1) + 1 + x]! + told;
    }
  }
  return out;
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function encoded({ width, height, points }: Picture, palette: number[], places: Map<number, number>): Buffer {
  const rows = Buffer.alloc((width + 1) * height);
  points.forEach((point, i) => (rows[Math.floor(i / width) * (width + 1) + 1 + (i % width)] = places.get(point)!));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, INDEXED, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk('IHDR', head), chunk('PLTE', colours), chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

function chunk(name: string, body: Buffer): Buffer {
  const out = Buffer.alloc(12 + body.length);
  out.writeUInt32BE(body.length, 0);
  out.write(name, 4, 'latin1');
  body.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, 8 + body.length)), 8 + body.length);
  return out;
}
