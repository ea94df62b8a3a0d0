// Which events are marked in the charts of an object, and where: what would lie over each other is one mark. Pure.

import type { NodeEvent } from '../api/types.ts';
import { severity } from './events.ts';
import type { State } from './verdict.ts';
import { worst } from './worst.ts';

/** What is marked although nothing is wrong: figures may be others from then on. */
const STARTED = 'node_started';
const APPLIED = 'config_applied';

const isBad = (event: NodeEvent) => ['warn', 'bad'].includes(severity(event.severity));

/** `object`: as the API has it, such as `lun:vm01`. Of the node all that is bad is marked, whatever it is about. */
export function isMarked(event: NodeEvent, object: string): boolean {
  if (object === 'node') return isBad(event) || event.code === STARTED || event.code === APPLIED;
  const { kind, name } = event.object;
  if (kind === 'node') return event.code === STARTED || (event.code === APPLIED && mayName(event, object));
  return isBad(event) && `${kind}:${name}` === object;
}

/** What is changed by generations, which name it. */
const STORED = ['lun', 'target', 'host'];

/** The change was one of this object, or of more objects than it names. */
function mayName(event: NodeEvent, object: string): boolean {
  const { objects } = (event.fields ?? {}) as { objects?: unknown };
  if (typeof objects !== 'string' || !STORED.includes(split(object)[0] ?? '')) return false;
  return / and \d+ more$/.test(objects) || objects.split(', ').includes(split(object).join(' '));
}

/** Kind and name of an object. */
export function split(object: string): string[] {
  const at = object.indexOf(':');
  return at < 0 ? [object] : [object.slice(0, at), object.slice(at + 1)];
}

export const secondsOf = (event: NodeEvent) => Date.parse(event.time) / 1000;

/** Of both lists each once, the oldest first, and of these what is marked in the charts of the object. */
export function marked(object: string, ...lists: NodeEvent[][]): NodeEvent[] {
  const known = new Map(lists.flat().filter((event) => isMarked(event, object)).map((event) => [event.id, event]));
  return [...known.values()].sort((a, b) => a.id - b.id);
}

export interface Mark {
  /** Of its first event. */
  id: number;
  /** In pixels, from the left. */
  at: number;
  /** The worst of them. */
  state: State;
  events: NodeEvent[];
}

/** Two marks have so much between them that each can be hit, in pixels. */
export const APART = 24;

/** `events`: the oldest first; `x`: where a moment stands, in pixels. What is not within `width` is left out. */
export function placed(events: NodeEvent[], x: (seconds: number) => number, width: number): Mark[] {
  const groups: { at: number; events: NodeEvent[] }[] = [];
  for (const event of events) {
    const at = x(secondsOf(event));
    const last = groups.at(-1);
    if (last && at - last.at < APART) last.events.push(event);
    else groups.push({ at, events: [event] });
  }
  return groups.flatMap(({ at, events }) => {
    const seen = events.filter((event) => x(secondsOf(event)) >= 0 && x(secondsOf(event)) <= width);
    return seen.length ? [{ id: events[0]!.id, at: Math.max(0, at), state: worst(seen.map((event) => severity(event.severity))), events: seen }] : [];
  });
}
