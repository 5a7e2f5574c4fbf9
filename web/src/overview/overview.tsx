// SPDX-License-Identifier: Apache-2.0
import { model } from "../live";

export function Overview() {
  const { job } = model.value;
  return <main class="overview">{job?.summary}</main>;
}
