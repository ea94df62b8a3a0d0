// The lab's drawing: hosts, switches, targets and the links between them, at places that never change. Pure.

import type { Bed, LabLink, LabPath, LabPort, LinkState } from '../api/types.ts';
import { cli, word, type Change } from './changes.ts';
import { plural } from './format.ts';
import type { State } from './verdict.ts';

export interface Box {
  id: string;
  kind: 'host' | 'switch' | 'target';
  name: string;
  x: number;
  y: number;
  width: number;
  height: number;
  ports: { port: LabPort; y: number }[];
}

export interface Line {
  link: LabLink;
  x1: number;
  y1: number;
  x2: number;
  y2: number;
  bytes: number;
}

export interface Drawn {
  boxes: Box[];
  lines: Line[];
  width: number;
  height: number;
}

const WIDTH = 940;
const BOX = 210;
const SWITCH = 110;
const HEAD = 34;
const ROW = 58;
const GAP = 18;

export const LINK_WORDS: Record<LinkState, { state: State; word: string }> = {
  up: { state: 'good', word: 'up' },
  cut: { state: 'bad', word: 'cut' },
  black_hole: { state: 'bad', word: 'black hole' },
  slow: { state: 'warn', word: 'slow' },
};

/** What a click makes of a link: the fault that is chosen, or up again. */
export function clickWord(state: LinkState, fault: LinkState): string {
  const words: Record<LinkState, string> = { up: 'Up again', cut: 'Cut it', black_hole: 'Make it a black hole', slow: 'Make it slow' };
  return words[state === 'up' ? fault : 'up'];
}

const PATHS: Record<string, State> = { active: 'good', standby: 'off', marginal: 'warn', proving: 'warn', connecting: 'warn', cold: 'off', down: 'bad', quarantined: 'bad', disabled: 'off' };

export function pathState(path: LabPath): { state: State; word: string } {
  return { state: PATHS[path.state] ?? 'off', word: path.state };
}

/** What goes over a link now: all paths that use its port. */
function flow(link: LabLink, kind: string, paths: LabPath[]): number {
  return paths.filter((path) => (kind === 'target' ? path.port : path.nic) === link.port).reduce((sum, path) => sum + path.bytes_per_second, 0);
}

export function draw(bed: Pick<Bed, 'machines' | 'switches' | 'links' | 'paths'>): Drawn {
  const boxes: Box[] = [];
  let height = 0;
  for (const [side, x] of [['host', 0], ['target', WIDTH - BOX]] as const) {
    let y = 0;
    for (const machine of bed.machines.filter((one) => (one.kind === 'target' ? 'target' : 'host') === side)) {
      const tall = HEAD + Math.max(1, machine.ports.length) * ROW;
      boxes.push({ id: machine.name, kind: side, name: machine.name, x, y, width: BOX, height: tall, ports: machine.ports.map((port, i) => ({ port, y: y + HEAD + i * ROW + ROW / 2 - 6 })) });
      y += tall + GAP;
    }
    height = Math.max(height, y - GAP);
  }
  height = Math.max(height, bed.switches.length * (ROW + GAP));
  const pitch = height / Math.max(1, bed.switches.length);
  bed.switches.forEach((one, i) => {
    boxes.push({ id: one.name, kind: 'switch', name: one.name, x: (WIDTH - SWITCH) / 2, y: i * pitch + (pitch - ROW) / 2, width: SWITCH, height: ROW, ports: [] });
  });
  const lines = bed.links.flatMap((link): Line[] => {
    const machine = boxes.find((box) => box.id === link.machine);
    const middle = boxes.find((box) => box.id === link.switch);
    if (!machine || !middle) return [];
    const y1 = machine.ports.find((one) => one.port.name === link.port)?.y ?? machine.y + HEAD;
    const isTarget = machine.kind === 'target';
    return [{ link, x1: isTarget ? machine.x : machine.x + machine.width, y1, x2: isTarget ? middle.x + middle.width : middle.x, y2: middle.y + middle.height / 2, bytes: flow(link, machine.kind, bed.paths) }];
  });
  return { boxes, lines, width: WIDTH, height };
}

/** As a shell sends a document. */
function sent(path: string, body: unknown): string {
  return `echo ${word(JSON.stringify(body))} | causeway api POST ${path} -`;
}

export function setLink(bed: number, link: string, state: LinkState): Change {
  const body = { link, state };
  return { title: `Link ${link}: ${LINK_WORDS[state].word}`, verb: 'Do it', method: 'POST', path: `lab/beds/${bed}/links`, body, cli: sent(`lab/beds/${bed}/links`, body), plans: false };
}

export function startBed(topology: string, rate: string, seconds: number, writePercent: number): Change {
  const body = { topology, rate, load: { seconds, write_percent: writePercent } };
  return {
    title: 'Start a lab', verb: 'Start', method: 'POST', path: 'lab/beds', body, cli: sent('lab/beds', body), plans: false,
    explain: 'It makes three network namespaces of its own and touches nothing else. It ends by itself.',
  };
}

export function tearDown(bed: Bed): Change {
  const path = `lab/beds/${bed.id}`;
  return {
    title: 'Tear the lab down', verb: 'Tear it down', method: 'DELETE', path, cli: cli('api', 'DELETE', path), plans: false,
    typed: bed.topology,
    explain: `Its load ends, and its namespaces go: ${bed.machines.map((one) => one.name).join(', ')}, ${plural(bed.switches.length, 'switch', 'switches')}, ${plural(bed.links.length, 'link')}. Nothing else of this machine is touched.`,
  };
}
