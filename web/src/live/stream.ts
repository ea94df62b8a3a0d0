// The daemon's stream of events (SSE). Where it has none, the page asks again and again instead.

import { API } from '../api/client.ts';
import type { Activity, NodeEvent } from '../api/types.ts';
import { merged, type ActivityChange } from './merge.ts';

/** So long after its last message the stream is not relied on, in milliseconds. */
const SILENT_MS = 3_000;
/** So long after it was refused it is tried again. */
const AGAIN_MS = 60_000;

export interface Heard {
  activity(activity: Activity): void;
  event(event: NodeEvent): void;
  /** Events were passed over: the log has them. */
  missed(): void;
}

export class Stream {
  private source: EventSource | undefined;
  private activity: Activity | undefined;
  private newest = 0;
  private last = 0;
  private refused = -Infinity;
  private wanted = false;
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

  /** It brings the figures: nobody has to ask. */
  serves(now: number): boolean {
    if (this.wanted && !this.source && now - this.refused > AGAIN_MS) this.open();
    return now - this.last < SILENT_MS;
  }

  private open(): void {
    if (this.source || typeof EventSource === 'undefined') return;
    // A browser that tries again by itself says where it was; a new stream is told here.
    const since = this.newest ? `&since=${this.newest}` : '';
    const source = new EventSource(`${API}events?topics=activity,events${since}`);
    this.source = source;
    source.addEventListener('activity', (message) => this.take(JSON.parse(message.data as string) as Activity));
    source.addEventListener('activity_change', (message) => {
      // Without the whole there is nothing to change; it comes first on every connection.
      if (this.activity) this.take(merged(this.activity, JSON.parse(message.data as string) as ActivityChange));
    });
    source.addEventListener('event', (message) => {
      const event = JSON.parse(message.data as string) as NodeEvent;
      this.newest = Math.max(this.newest, event.id);
      this.heard.event(event);
    });
    source.addEventListener('missed', () => this.heard.missed());
    source.onerror = () => {
      this.activity = undefined;
      // The browser tries again by itself where the connection broke, and not where it was refused.
      if (source.readyState !== EventSource.CLOSED) return;
      this.close();
      this.refused = Date.now();
    };
  }

  private take(activity: Activity): void {
    this.last = Date.now();
    this.activity = activity;
    this.heard.activity(activity);
  }

  private close(): void {
    this.source?.close();
    this.source = undefined;
    this.activity = undefined;
    this.last = 0;
  }
}
