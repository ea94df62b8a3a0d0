// Two moments of the daemon's counters make rates. Pure: no clock, no request.

import type { Activity, Core, Latency, LunActivity, OpActivity, SessionActivity } from '../api/types.ts';
import { quantile, since, sum } from './histogram.ts';

export interface Rates {
  readIops: number;
  writeIops: number;
  readBytes: number;
  writeBytes: number;
  readP50: number | undefined;
  readP99: number | undefined;
  writeP50: number | undefined;
  writeP99: number | undefined;
  inFlight: number;
}

export interface SessionRates {
  bytesIn: number;
  bytesOut: number;
  commands: number;
}

/** What the stream has of the node as a whole (its topic `overview`). */
export interface Overview {
  started: string;
  at_us: number;
  cores: Core[];
  in_flight: number;
  read: OverviewOp;
  write: OverviewOp;
}

export interface OverviewOp {
  ops: number;
  bytes: number;
  p50_us?: number;
  p99_us?: number;
}

/** What was counted since the moment before. */
export interface Fresh {
  read: Latency;
  write: Latency;
}

export interface Moment {
  node: Rates;
  luns: Map<string, Rates>;
  /** How long commands took, of LUNs that did something. */
  took: Map<string, Fresh>;
  sessions: Map<number, SessionRates>;
  /** The part of the cores' time that was worked, 0 to 1. */
  busy: number;
}

export const IDLE: Rates = {
  readIops: 0,
  writeIops: 0,
  readBytes: 0,
  writeBytes: 0,
  readP50: undefined,
  readP99: undefined,
  writeP50: undefined,
  writeP99: undefined,
  inFlight: 0,
};

const NOTHING: OpActivity = { ops: 0, bytes: 0, latency: {} };

/** `undefined` where the two cannot be compared: the daemon was started anew, or no time has passed. */
export function between(before: Activity, after: Activity): Moment | undefined {
  const seconds = (after.at_us - before.at_us) / 1e6;
  if (before.started !== after.started || seconds <= 0) return undefined;
  const known = knownOf(before.luns);
  const knownSessions = new Map(before.sessions.map((session) => [session.id, session]));
  const luns = new Map<string, Rates>();
  const took = new Map<string, Fresh>();
  const reads: Latency[] = [];
  const writes: Latency[] = [];
  const node = { ...IDLE };
  for (const [i, lun] of after.luns.entries()) {
    const was = known(lun.name, i);
    // Of 10,000 most did nothing: what did not change is the same object.
    if (was === lun) {
      luns.set(lun.name, lun.in_flight ? { ...IDLE, inFlight: lun.in_flight } : IDLE);
      node.inFlight += lun.in_flight;
      continue;
    }
    const [rates, read, write] = ofLun(was, lun, seconds);
    luns.set(lun.name, rates);
    node.readIops += rates.readIops;
    node.writeIops += rates.writeIops;
    node.readBytes += rates.readBytes;
    node.writeBytes += rates.writeBytes;
    node.inFlight += rates.inFlight;
    if (read.count) reads.push(read);
    if (write.count) writes.push(write);
    if (read.count || write.count) took.set(lun.name, { read, write });
  }
  quantiles(node, sum(reads), sum(writes));
  const sessions = new Map(
    after.sessions.map((session) => [session.id, ofSession(knownSessions.get(session.id), session, seconds)]),
  );
  return { node, luns, took, sessions, busy: busy(before, after) };
}

/** Of the node as a whole, as `between` has it. A LUN that went took its counts along: nothing is less than none. */
export function ofWhole(before: Overview, after: Overview): Pick<Moment, 'node' | 'busy'> | undefined {
  const seconds = (after.at_us - before.at_us) / 1e6;
  if (before.started !== after.started || seconds <= 0) return undefined;
  const rose = (kind: 'read' | 'write', what: 'ops' | 'bytes') => Math.max(0, after[kind][what] - before[kind][what]) / seconds;
  const node: Rates = {
    readIops: rose('read', 'ops'),
    writeIops: rose('write', 'ops'),
    readBytes: rose('read', 'bytes'),
    writeBytes: rose('write', 'bytes'),
    readP50: after.read.p50_us,
    readP99: after.read.p99_us,
    writeP50: after.write.p50_us,
    writeP99: after.write.p99_us,
    inFlight: after.in_flight,
  };
  return { node, busy: busy(before, after) };
}

/** A LUN of before; mostly they stand where they stood. */
function knownOf(luns: LunActivity[]): (name: string, at: number) => LunActivity | undefined {
  let all: Map<string, LunActivity> | undefined;
  return (name, at) => {
    if (luns[at]?.name === name) return luns[at];
    all ??= new Map(luns.map((lun) => [lun.name, lun]));
    return all.get(name);
  };
}

/** What made lists old. */
export interface Others {
  /** A session came or went. */
  sessions: boolean;
  /** A LUN came, went or changed its state. */
  luns: boolean;
  /** LUNs that did something. */
  moved: string[];
}

export function others(before: Activity, after: Activity): Others {
  const ids = (activity: Activity) => activity.sessions.map((one) => one.id).sort((a, b) => a - b).join();
  const same = (lun: LunActivity, was: LunActivity | undefined) => was?.name === lun.name && was.online === lun.online;
  const changed = after.luns.flatMap((lun, i) => (before.luns[i] === lun ? [] : [[lun, before.luns[i]] as const]));
  const luns = before.luns.length !== after.luns.length || !changed.every(([lun, was]) => same(lun, was));
  // All are asked for where they are others: one that was put in moves all behind it.
  const moved = luns ? [] : changed.map(([lun]) => lun.name);
  return { sessions: ids(before) !== ids(after), luns, moved };
}

function ofLun(before: LunActivity | undefined, after: LunActivity, seconds: number): [Rates, Latency, Latency] {
  const read = since(after.read.latency.total, before?.read.latency.total);
  const write = since(after.write.latency.total, before?.write.latency.total);
  const rates: Rates = {
    ...IDLE,
    readIops: rise(before?.read ?? NOTHING, after.read, 'ops') / seconds,
    writeIops: rise(before?.write ?? NOTHING, after.write, 'ops') / seconds,
    readBytes: rise(before?.read ?? NOTHING, after.read, 'bytes') / seconds,
    writeBytes: rise(before?.write ?? NOTHING, after.write, 'bytes') / seconds,
    inFlight: after.in_flight,
  };
  quantiles(rates, read, write);
  return [rates, read, write];
}

function quantiles(rates: Rates, read: Latency, write: Latency): void {
  rates.readP50 = quantile(read, 0.5);
  rates.readP99 = quantile(read, 0.99);
  rates.writeP50 = quantile(write, 0.5);
  rates.writeP99 = quantile(write, 0.99);
}

/** A LUN of the same name that is another one counts from zero. */
function rise(before: OpActivity, after: OpActivity, what: 'ops' | 'bytes'): number {
  return after[what] >= before[what] ? after[what] - before[what] : after[what];
}

function ofSession(before: SessionActivity | undefined, after: SessionActivity, seconds: number): SessionRates {
  const rose = (was: number | undefined, is: number) => Math.max(0, is - (was ?? 0)) / seconds;
  return {
    bytesIn: rose(before?.bytes_in, after.bytes_in),
    bytesOut: rose(before?.bytes_out, after.bytes_out),
    commands: rose(before?.commands, after.commands),
  };
}

/** By session: the p99 of what it did since; of those that did something. */
export function latencies(before: SessionActivity[], after: SessionActivity[]): Map<number, number> {
  const known = new Map(before.map((session) => [session.id, session.latency]));
  return new Map(after.flatMap(({ id, latency }): [number, number][] => {
    const p99 = quantile(since(latency, known.get(id)), 0.99);
    return p99 === undefined ? [] : [[id, p99]];
  }));
}

function busy(before: Pick<Activity, 'cores' | 'at_us'>, after: Pick<Activity, 'cores' | 'at_us'>): number {
  const us = (activity: Pick<Activity, 'cores'>) => activity.cores.reduce((all, core) => all + core.busy_us, 0);
  const whole = (after.at_us - before.at_us) * Math.max(1, after.cores.length);
  return Math.min(1, Math.max(0, (us(after) - us(before)) / whole));
}
