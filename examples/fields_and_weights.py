"""Titles as a field of their own: features are blocks, each with its column, n-grams and weight."""

import longtail

texts = {
    "title": ["Rosen im Garten", "Suppenküche", "Vogelkunde", "Gartenvögel"],
    "text": ["Pflege und Schnitt", "Kochen mit Wurzeln", "Vögel der Küste", "Vögel im Garten beobachten"],
}
labels = [["Garten"], ["Kochen"], ["Vögel"], ["Garten", "Vögel"]]
model = longtail.Linear(
    features={
        "blocks": [
            {"column": "text"},
            {"column": "title", "chars": [4, 5], "weight": 0.7},  # letters: German compounds share parts
        ]
    }
).fit(texts, labels)
[found] = model.predict({"title": ["Vogelgarten"], "text": ["Beobachten an der Küste"]}, k=2)
print([(suggestion.name, round(suggestion.score, 2)) for suggestion in found])
