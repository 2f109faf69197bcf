"""Pictures: SVG that notebooks show, and pages."""

import xml.etree.ElementTree as xml

import capo
import pytest

SVG = "{http://www.w3.org/2000/svg}"


def tasks(svg):
    groups = xml.fromstring(svg).iter(f"{SVG}g")
    return [group for group in groups if group.get("class", "").startswith("task ")]


def test_a_schedule_draws_itself():
    schedule = capo.generate("1f1b", ranks=2, microbatches=3)
    picture = schedule.draw(cost={"f": 1, "b": 2})
    assert len(tasks(picture.svg)) == 12
    assert picture._repr_svg_() == picture.svg
    assert {task.get("data-rank") for task in tasks(schedule._repr_svg_())} == {"0", "1"}


def test_costs_are_those_of_simulate():
    ends = [float(task.get("data-end")) for task in tasks(capo.draw([1, -1], cost="f=2,b=5,w=0").svg)]
    assert max(ends) == capo.simulate([1, -1], cost="f=2,b=5,w=0").makespan == 7


def test_the_verdict_is_that_of_check():
    hazard = [1, -1, 1, -1.5, -1, -1.5]
    assert ">accepted</text>" in capo.draw([1, -1]).svg
    svg = capo.draw(hazard, plan="te", modules="linear").svg
    assert "error[B01]" in svg and not capo.check(hazard, plan="te", modules="linear").accepted
    assert "error[S15]" in capo.draw([1, -1, -1]).svg


def test_the_picture_says_what_its_times_are():
    assert "predicted: makespan 7, the busiest rank is idle 0.00 %" in capo.draw([1, -1], cost="f=2,b=5,w=0").svg
    untimed = capo.draw([1, -1], cost="f=0,b=0,w=0").svg
    assert "without times, each entry at its index: no task takes any time" in untimed
    assert len(tasks(untimed)) == 2


def test_flags_of_the_command_are_arguments():
    schedule = capo.generate("1f1b", ranks=2, microbatches=40)
    wide, folded = schedule.draw().svg, schedule.draw(fold=True).svg
    assert float(xml.fromstring(folded).get("width")) < float(xml.fromstring(wide).get("width"))
    assert 'class="path"' in wide and 'class="path"' not in schedule.draw(path=False).svg
    assert xml.fromstring(schedule.draw(paper=True).svg).get("width") == "85mm"
    both = schedule.draw(against=[1, -1])
    assert both.svg.count('class="verdict"') == 2 and len(tasks(both.svg)) == 162
    assert both.html.count("<h2>") == 2
    with pytest.raises(ValueError, match="never closed"):
        schedule.draw(against="[1, -1").svg


def test_files_are_what_their_names_say(tmp_path):
    picture = capo.draw([1, -1])
    picture.save(tmp_path / "a.svg")
    picture.save(tmp_path / "a.html")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == picture.svg
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_name_that_says_another_form_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"path: .*a\.png' ends neither in \.svg nor in \.html"):
        capo.draw([1, -1]).save(tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()


def test_wrong_options_are_errors():
    with pytest.raises(ValueError, match="cost"):
        capo.draw([1, -1], cost="nonsense").svg
