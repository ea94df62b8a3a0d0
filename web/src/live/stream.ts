// The daemon's stream of events (SSE). Where it has none, the page asks again and again instead.

import { API, bearing } from '../api/client.ts';
import type { Activity, NodeEvent } from '../api/types.ts';
import { merged, type ActivityChange } from './merge.ts';
import type { Overview } from './rates.ts';

/** So long after its last message the stream is not relied on, in milliseconds. */
const SILENT_MS = 3_000;
/** So long after it was refused it is tried again. */
const AGAIN_MS = 60_000;

/** The topic that has everything. */
export const WHOLE = 'activity';
/** What messages are called. */
const NAMES = ['overview', 'activity', 'activity_change', 'event', 'missed'];

export interface Heard {
  /** `alone`: of some objects, and not of all. */
  activity(activity: Activity, alone: boolean): void;
  overview(overview: Overview): void;
  event(event: NodeEvent): void;
  /** Events were passed over: the log has them. */
  missed(): void;
}

export class Stream {
  private source: { close(): void } | undefined;
  private activity: Activity | undefined;
  private newest = 0;
  private last = 0;
  private refused = -Infinity;
  private wanted = false;
  private topics = WHOLE;
  private readonly heard: Heard;

  constructor(heard: Heard) {
    this.heard = heard;
  }

  run(wanted: boolean): void {
    this.wanted = wanted;
    if (wanted) this.open();
    else this.close();
  }

  restart(): void {
    this.close();
    this.refused = -Infinity;
    if (this.wanted) this.open();
  }

  /** It brings some objects alone, and the node as a whole. */
  get isNarrow(): boolean {
    return this.topics !== WHOLE;
  }

  /** What it brings beside events. A stream has its topics for life: another one begins. */
  ask(topics: string): void {
    if (topics === this.topics) return;
    this.topics = topics;
    const { last } = this;
    if (!this.source) return;
    this.close();
    this.open();
    // The figures go on within a second: nobody has to ask meanwhile.
    this.last = last;
  }

  /** It brings the figures: nobody has to ask. */
  serves(now: number): boolean {
    if (this.wanted && !this.source && now - this.refused > AGAIN_MS) this.open();
    return now - this.last < SILENT_MS;
  }

  private open(): void {
    if (this.source) return;
    // A browser that tries again by itself says where it was; a new stream is told here.
    const since = this.newest ? `&since=${this.newest}` : '';
    const url = `${API}events?topics=${encodeURIComponent(`${this.topics},events`)}${since}`;
    const headers = bearing();
    if (headers['authorization']) void this.read(url, headers);
    else if (typeof EventSource !== 'undefined') this.listen(new EventSource(url));
  }

  private listen(source: EventSource): void {
    this.source = source;
    for (const name of NAMES) source.addEventListener(name, (message) => this.hear(name, message.data as string));
    source.onerror = () => {
      this.activity = undefined;
      // The browser tries again by itself where the connection broke, and not where it was refused.
      if (source.readyState !== EventSource.CLOSED) return;
      this.close();
      this.refused = Date.now();
    };
  }

  /** The same with a token, which a browser sends with no stream of its own. */
  private async read(url: string, headers: Record<string, string>): Promise<void> {
    const end = new AbortController();
    this.source = { close: () => end.abort() };
    let served = false;
    try {
      const answer = await fetch(url, { headers, cache: 'no-store', signal: end.signal });
      served = answer.ok;
      const reader = served ? answer.body?.pipeThrough(new TextDecoderStream()).getReader() : undefined;
      for (let text = ''; reader; ) {
        const { value, done } = await reader.read();
        if (done) break;
        const messages = (text + value).split('\n\n');
        text = messages.pop() ?? '';
        for (const message of messages) {
          const field = (name: string) => message.split('\n').filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart()).join('\n');
          this.hear(field('event'), field('data'));
        }
      }
    } catch {
      // The connection broke.
    }
    if (end.signal.aborted) return;
    this.close();
    this.refused = Date.now() - (served ? AGAIN_MS - SILENT_MS : 0);
  }

  private hear(name: string, data: string): void {
    switch (name) {
      case 'overview': return this.heard.overview(JSON.parse(data) as Overview);
      case 'activity': return this.take(JSON.parse(data) as Activity);
      // Without the whole there is nothing to change; it comes first on every connection.
      case 'activity_change': return this.activity && this.take(merged(this.activity, JSON.parse(data) as ActivityChange));
      case 'event': {
        const event = JSON.parse(data) as NodeEvent;
        this.newest = Math.max(this.newest, event.id);
        return this.heard.event(event);
      }
      case 'missed': return this.heard.missed();
    }
  }

  private take(activity: Activity): void {
    this.last = Date.now();
    this.activity = activity;
    this.heard.activity(activity, this.isNarrow);
  }

  private close(): void {
    this.source?.close();
    this.source = undefined;
    this.activity = undefined;
    this.last = 0;
  }
}
