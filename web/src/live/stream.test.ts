import { afterEach, describe, expect, it, vi } from 'vitest';
import { useToken } from '../api/client.ts';
import type { Activity, NodeEvent } from '../api/types.ts';
import { Stream } from './stream.ts';

describe('the stream of who has not logged in', () => {
  afterEach(() => vi.unstubAllGlobals());

  it('is refused, tried again a minute later and not before, and begins with a login', () => {
    const opened: string[] = [];
    vi.stubGlobal('EventSource', class {
      static CLOSED = 2;
      readyState = 0;
      onerror: (() => void) | undefined;
      constructor(url: string) {
        opened.push(url);
        sources.push(this);
      }
      addEventListener() {}
      close() {}
    });
    const sources: { readyState: number; onerror: (() => void) | undefined }[] = [];
    const refuse = () => {
      const last = sources.at(-1)!;
      last.readyState = 2;
      last.onerror?.();
    };
    const stream = new Stream({ activity: () => undefined, event: () => undefined, missed: () => undefined, overview: () => undefined });
    stream.run(true);
    refuse();
    const served = [1_000, 59_000].map((later) => stream.serves(Date.now() + later));
    // Whoever reads asks once a second meanwhile.
    expect([served, opened.length]).toEqual([[false, false], 1]);
    stream.serves(Date.now() + 61_000);
    expect(opened.length).toBe(2);
    refuse();
    stream.restart();
    expect(opened).toEqual(Array.from({ length: 3 }, () => '/api/v1/events?topics=activity%2Cevents'));
    stream.run(false);
  });
});

describe('the stream of who came with a token', () => {
  afterEach(() => {
    useToken('');
    vi.unstubAllGlobals();
  });

  it('carries the token, and is heard whole, however it is cut', async () => {
    const asked: [string, string | undefined][] = [];
    const text = 'event: activity\ndata: {"at_us":1,"luns":[],"sessions":[]}\n\n: alive\n\nid: 7\nevent: event\ndata: {"id":7,"message":"ä"}\n\nevent: missed\ndata: {}\n\n';
    const bytes = new TextEncoder().encode(text);
    vi.stubGlobal('fetch', (url: string, { headers }: { headers: Record<string, string> }) => {
      asked.push([url, headers['authorization']]);
      return Promise.resolve(new Response(new ReadableStream({
        start(to) {
          for (let at = 0; at < bytes.length; at += 5) to.enqueue(bytes.slice(at, at + 5));
          to.close();
        },
      })));
    });
    const heard: unknown[] = [];
    const stream = new Stream({ activity: (one: Activity) => heard.push(one.at_us), event: (one: NodeEvent) => heard.push(one.message), missed: () => heard.push('missed'), overview: () => undefined });
    useToken('secret');
    stream.run(true);
    await vi.waitFor(() => expect(heard).toEqual([1, 'ä', 'missed']));
    expect(asked).toEqual([['/api/v1/events?topics=activity%2Cevents', 'Bearer secret']]);
    // It ended: soon it goes on from where it was, and not at once.
    await vi.waitFor(() => expect(stream.serves(Date.now() + 2_000)).toBe(false));
    expect(asked.length).toBe(1);
    stream.serves(Date.now() + 4_000);
    expect(asked[1]?.[0]).toBe('/api/v1/events?topics=activity%2Cevents&since=7');
    stream.run(false);
  });
});
