// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App, register_page_keys } from "./app";
import { start_keyboard } from "./keyboard";
import { start_live } from "./live";
import { start_clock } from "./now";
import { start_router } from "./router";
import { start_theme } from "./theme";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/overview.css";
import "./styles/logs.css";

start_theme();
start_router();
start_keyboard();
register_page_keys();
start_clock();
const root = document.getElementById("app");
if (root) render(<App />, root);
start_live();
