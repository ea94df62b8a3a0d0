import { afterEach, describe, expect, it, vi } from 'vitest';
import { once } from './client.ts';

describe('requests of a dialog', () => {
  afterEach(() => vi.unstubAllGlobals());

  it('have one key until they are answered, and another one then, or where something else is asked', async () => {
    const keys: (string | undefined)[] = [];
    const answers: (Error | Response)[] = [];
    vi.stubGlobal('fetch', (_: string, { headers }: { headers: Record<string, string> }) => {
      keys.push(headers['idempotency-key']);
      const answer = answers.shift();
      return answer instanceof Response ? Promise.resolve(answer) : Promise.reject(answer ?? new Error('gone'));
    });
    const refusal = (code: string) => new Response(JSON.stringify({ title: '', status: 409, detail: '', code }), { status: 409 });
    const send = once();
    const ask = (size: string) => send('POST', 'luns', { size }).catch(() => undefined);
    answers.push(new Error('gone'), refusal('CWY5012'), refusal('CWY4001'), new Error('gone'), new Error('gone'));
    for (const size of ['1G', '1G', '1G', '1G', '2G']) await ask(size);
    const [lost, underWay, refused, again, other] = keys;
    expect(lost).toMatch(/^\d+-\d+-\d+-\d+$/);
    expect([underWay, refused]).toEqual([lost, lost]);
    expect(new Set([lost, again, other]).size).toBe(3);
  });
});
