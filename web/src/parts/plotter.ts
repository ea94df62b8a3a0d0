// What draws charts. It is loaded, and each chart is made, when the browser has nothing more urgent to do: what can be
// read is there first.

import type uPlot from 'uplot';

/** So long it waits for a browser that is always busy, in milliseconds. */
const PATIENCE_MS = 1_000;
/** So long after it could not be loaded that is tried again. */
const AGAIN_MS = 5_000;

let loading: Promise<typeof uPlot> | undefined;
let known: typeof uPlot | undefined;

/** It, where it is here already: charts of a screen that is opened later are there with the screen. */
export function plotter(): typeof uPlot | undefined {
  return known;
}

/** Calls with it when there is time; what is returned calls that off. */
export function whenIdle(make: (plot: typeof uPlot) => void): () => void {
  let wanted = true;
  const attempt = () => {
    if (!wanted) return;
    load().then((plot) => idle(() => { if (wanted) make(plot); }), () => setTimeout(attempt, AGAIN_MS));
  };
  idle(attempt);
  return () => (wanted = false);
}

function load(): Promise<typeof uPlot> {
  loading ??= import('uplot').then(
    (module) => (known = module.default),
    (error: unknown) => {
      loading = undefined;
      throw error;
    },
  );
  return loading;
}

function idle(run: () => void): void {
  // Safari has none.
  if (typeof requestIdleCallback === 'function') requestIdleCallback(run, { timeout: PATIENCE_MS });
  else setTimeout(run, 50);
}
