// What the page knows of the node: asked for once, shown everywhere.

import { get } from '../api/client.ts';
import { Unreachable } from '../api/problem.ts';
import type { Activity, SessionActivity } from '../api/types.ts';
import { Heats } from './heats.ts';
import { link, pause, type Link } from './link.ts';
import { lists } from './lists.svelte.ts';
import { between, latencies, ofWhole, others, type Moment, type Overview, type Rates } from './rates.ts';
import { Ring } from './ring.ts';
import { Stream, WHOLE } from './stream.ts';

const SECOND = 1_000;
/** So much of the past is kept in the page: half an hour. */
const KEPT = 1_800;
/** Between samples that are further apart, in seconds, nothing is known: the daemon was away, or the page was hidden. */
const GAP = 3;
/** LUNs whose past is kept; more only while one is shown. */
const LUNS_KEPT = 100;
/** Of so many seconds together the p99 of a session is said: one second has too few commands. */
const LATELY = 10;
/** LUNs of which it is kept how long each command took. */
const HEATS_KEPT = 24;
/** Who stays with an object for so long gets that alone: before, the whole that is sent at every change costs more. */
const SETTLED_MS = 5_000;
/** So long the next screen may take to say what it shows: it is loaded when it is opened first. */
const NEXT_MS = 500;
/** A stream has 64 objects at most. */
const OBJECTS_MAX = 64;

export const FIGURES = [
  'readIops', 'writeIops', 'readBytes', 'writeBytes', 'readP50', 'readP99', 'writeP50', 'writeP99', 'inFlight',
] as const satisfies readonly (keyof Rates)[];

class Live {
  link = $state.raw<Link>({ state: 'starting' });
  activity = $state.raw<Activity>();
  moment = $state.raw<Moment>();
  /** Grows with every sample: who draws the past reads it. */
  tick = $state(0);
  /** How often it was not told what happens: what was recorded then is asked for. */
  holes = $state(0);
  readonly node = new Ring(FIGURES, KEPT, GAP);
  private readonly luns = new Map<string, Ring>();
  private readonly shown = new Set<string>();
  private readonly heats = new Map<string, Heats>();
  /** Counters of the sessions in the last seconds, the oldest first; of one run of the daemon. */
  private recent: { started: string; sessions: SessionActivity[] }[] = [];
  private known = { tick: -1, p99: new Map<number, number>() };

  /** The newest two of the node as a whole, while objects are shown alone. */
  private wholes: Overview[] = [];
  /** `activity` has some objects, and not all. */
  private alone = false;
  private turning: ReturnType<typeof setTimeout> | undefined;

  private answered: number | undefined;
  /** Since when somebody looks. */
  private seen = 0;
  private failures = 0;
  private next = 0;
  private asking = false;
  private timer: ReturnType<typeof setInterval> | undefined;
  private readonly stream = new Stream({
    activity: (activity, alone) => this.take(activity, alone),
    overview: (overview) => (this.wholes = [...this.wholes, overview].slice(-2)),
    event: (event) => lists.happened(event),
    missed: () => lists.refresh(),
  });

  /** Begins to ask, until the page is hidden; and again when it is seen. */
  start(): void {
    document.addEventListener('visibilitychange', () => this.watch(!document.hidden));
    this.watch(!document.hidden);
  }

  /** Asks at once: after a login, or when somebody does not want to wait. */
  again(): void {
    this.failures = 0;
    this.next = 0;
    this.stream.restart();
    lists.refresh();
  }

  /** Only these are shown until what is returned is called: for `$effect`. Such as `lun:vm01`; all of them with commas. */
  only(objects: string): () => void {
    const topics = `overview,${objects}`;
    clearTimeout(this.turning);
    if (objects.split(',').length <= OBJECTS_MAX) {
      // From one object to the next there is no whole between.
      this.turning = setTimeout(() => this.stream.ask(topics), this.stream.isNarrow ? 0 : SETTLED_MS);
    }
    return () => {
      clearTimeout(this.turning);
      this.turning = setTimeout(() => this.stream.ask(WHOLE), NEXT_MS);
    };
  }

  /** The past of a LUN; while it is shown, one is kept for it. */
  ring(name: string): Ring {
    let ring = this.luns.get(name);
    if (!ring) this.luns.set(name, (ring = new Ring(FIGURES, KEPT, GAP)));
    this.shown.add(name);
    return ring;
  }

  /** How long the commands of a LUN took; while it is shown, that is kept for it. */
  heat(name: string): Heats {
    let heats = this.heats.get(name);
    if (!heats) this.heats.set(name, (heats = new Heats(KEPT)));
    return heats;
  }

  /** By session: the p99 of its commands in the last seconds, in microseconds. */
  get p99(): Map<number, number> {
    if (this.known.tick !== this.tick) this.known = { tick: this.tick, p99: latencies(this.recent[0]?.sessions ?? [], this.recent.at(-1)?.sessions ?? []) };
    return this.known.p99;
  }

  private watch(seen: boolean): void {
    clearInterval(this.timer);
    this.stream.run(seen);
    if (seen) {
      this.seen = Date.now();
      this.timer = setInterval(() => this.turn(), SECOND / 4);
      this.turn();
    }
  }

  private turn(): void {
    const now = Date.now();
    this.link = link(now, this.answered, this.failures > 0, this.seen);
    lists.turn(now, this.stream.serves(now));
    if (this.stream.serves(now) || this.asking || now < this.next) return;
    this.asking = true;
    void this.ask(now).finally(() => (this.asking = false));
  }

  private async ask(now: number): Promise<void> {
    this.next = now + SECOND;
    try {
      this.take(await get<Activity>('activity'));
    } catch (error) {
      // A refusal is an answer, too: the daemon is there.
      if (!(error instanceof Unreachable)) this.next = now + 5 * SECOND;
      this.failures++;
      this.next = Math.max(this.next, Date.now() + pause(this.failures));
    }
  }

  private take(activity: Activity, alone = false): void {
    if (this.alone !== alone) this.turned(alone);
    const before = this.activity;
    this.answered = Date.now();
    this.failures = 0;
    this.link = { state: 'live', at: this.answered };
    const moment = before && between(before, activity);
    const whole = alone && this.wholes[0] && this.wholes[1] && ofWhole(this.wholes[0], this.wholes[1]);
    if (moment && whole) Object.assign(moment, whole);
    if (before) lists.others(others(before, activity));
    else if (!alone) lists.refresh('status', 'sessions', 'hosts', 'targets', 'luns');
    this.activity = activity;
    const { started, sessions } = activity;
    this.recent = [...this.recent.filter((one) => one.started === started), { started, sessions }].slice(-LATELY - 1);
    if (!moment) return;
    this.moment = moment;
    const time = this.answered / SECOND;
    if (!alone || whole) {
      if (time - (this.node.newest ?? time) > GAP) this.holes++;
      this.node.push(time, FIGURES.map((figure) => moment.node[figure]));
    }
    for (const [name, rates] of moment.luns) {
      if (this.luns.size < LUNS_KEPT && !this.luns.has(name)) this.luns.set(name, new Ring(FIGURES, KEPT, GAP));
      this.luns.get(name)?.push(time, FIGURES.map((figure) => rates[figure]));
    }
    for (const [name, { read, write }] of moment.took) {
      const heats = this.heats.size < HEATS_KEPT ? this.heat(name) : this.heats.get(name);
      heats?.push(time, 'read', read);
      heats?.push(time, 'write', write);
    }
    this.tick++;
    if (alone) return;
    for (const name of this.heats.keys()) if (!moment.luns.has(name)) this.heats.delete(name);
    for (const name of this.luns.keys()) if (!moment.luns.has(name)) this.luns.delete(name);
  }

  /** Some objects are shown alone from now on, or all again: what was known of others has a gap, and is recalled anew. */
  private turned(alone: boolean): void {
    const shown = new Set(this.activity?.luns.map((lun) => lun.name));
    if (!alone) {
      this.wholes = [];
      for (const name of this.luns.keys()) if (!shown.has(name)) this.luns.delete(name);
      for (const name of this.heats.keys()) if (!shown.has(name)) this.heats.delete(name);
    }
    this.alone = alone;
    this.activity = undefined;
    this.recent = [];
  }
}

export const live = new Live();
